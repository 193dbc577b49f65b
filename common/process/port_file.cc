#include "common/process/port_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(
      "cannot ", what, " port file '", path, "': ", std::strerror(errno)));
}

}  // namespace

absl::Status WritePortFile(const std::string& path, const PortFile& contents) {
  if (path.empty()) return absl::OkStatus();
  nlohmann::ordered_json json;
  for (const auto& [name, number] : contents.numbers) json[name] = number;
  for (const auto& [name, text] : contents.texts) json[name] = text;
  json["pid"] = static_cast<int64_t>(getpid());

  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << json.dump() << "\n";
    file.flush();
    if (!file) return Failed("write", temporary);
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const absl::Status status = Failed("rename to", path);
    std::remove(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace farkv

#include "common/process/port_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(
      "cannot ", what, " port file '", path, "': ", std::strerror(errno)));
}

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.flush();
  return file ? absl::OkStatus() : Failed("write", path);
}

// While the descriptor is open, no other file can have its inode.
bool IsFileAt(const std::string& path, int descriptor) {
  struct stat there, ours;
  return stat(path.c_str(), &there) == 0 && fstat(descriptor, &ours) == 0 &&
         there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

}  // namespace

absl::StatusOr<PortFileWriter> PortFileWriter::Open(const std::string& path) {
  PortFileWriter writer;
  if (path.empty()) return writer;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Failed("replace", path);
  }
  writer.path_ = path;
  writer.temporary_ = absl::StrCat(path, ".", getpid(), ".tmp");
  // Only tried: a program that is ended while it starts leaves nothing.
  FARKV_RETURN_IF_ERROR(Write(writer.temporary_, ""));
  std::remove(writer.temporary_.c_str());
  return writer;
}

PortFileWriter& PortFileWriter::operator=(PortFileWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(published_, other.published_);
  return *this;
}

PortFileWriter::~PortFileWriter() {
  if (path_.empty()) return;
  std::remove(temporary_.c_str());
  if (published_ < 0) return;
  if (IsFileAt(path_, published_)) std::remove(path_.c_str());
  close(published_);
}

absl::Status PortFileWriter::Publish(const PortFile& contents) {
  if (path_.empty()) return absl::OkStatus();
  nlohmann::ordered_json json;
  for (const auto& [name, number] : contents.numbers) json[name] = number;
  for (const auto& [name, text] : contents.texts) json[name] = text;
  json["pid"] = static_cast<int64_t>(getpid());
  FARKV_RETURN_IF_ERROR(Write(temporary_, json.dump() + "\n"));
  published_ = open(temporary_.c_str(), O_PATH | O_CLOEXEC);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Failed("rename to", path_);
  }
  return absl::OkStatus();
}

}  // namespace farkv

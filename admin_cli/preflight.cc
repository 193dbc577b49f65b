#include "admin_cli/preflight.h"

#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "admin_cli/commands.h"
#include "admin_cli/listen_probe.h"
#include "admin_cli/tables.h"

namespace farkv {
namespace {

using Level = Finding::Level;

// One byte of sun_path is the terminating zero.
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

}  // namespace

std::string ReadFact(const PreflightSystem& system, const std::string& path) {
  std::ifstream file(system.root + path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

std::vector<std::string> ListFacts(const PreflightSystem& system,
                                   const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(system.root + folder, error);
  for (; !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

PreflightSystem ThisMachine() {
  PreflightSystem system;
  system.can_write = [](const std::string& directory) {
    return access(directory.c_str(), W_OK | X_OK) == 0;
  };
  system.try_listen = TryListen;
  system.environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
  system.clock_is_synchronised = [] {
    timex state{};
    return adjtimex(&state) != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  };
  return system;
}

void CheckMapDirectory(const PreflightOptions& options,
                       const PreflightSystem& system,
                       std::vector<Finding>& findings) {
  if (options.map_dir.empty()) return;
  std::error_code error;
  const std::string path = system.root + options.map_dir;
  const std::string socket =
      absl::StrCat(options.map_dir, "/", options.node_id, ".sock");
  Finding finding{"map-dir", Level::kOk, options.map_dir, ""};
  const auto fail = [&finding](const std::string& found,
                               const std::string& fix) {
    finding = {"map-dir", Level::kFail, found, fix};
  };
  if (!std::filesystem::exists(path, error)) {
    fail(options.map_dir + " does not exist",
         "make it; in Kubernetes, mount one volume into both pods");
  } else if (!std::filesystem::is_directory(path, error)) {
    fail(options.map_dir + " is no directory", "name a directory");
  } else if (!system.can_write(path)) {
    fail(options.map_dir + " cannot be written to by this user",
         "give node and workers one group and the directory mode 2770 "
         "(fsGroup in Kubernetes)");
  } else if (socket.size() > kMaxSocketPath) {
    fail(absl::StrCat(socket, " has ", socket.size(),
                      " bytes, a socket's path at most ", kMaxSocketPath),
         "choose a shorter --map-dir or --node-id");
  }
  findings.push_back(std::move(finding));
}

void CheckClock(const PreflightSystem& system, std::vector<Finding>& findings) {
  const std::string source =
      ReadFact(system,
               "/sys/devices/system/clocksource/clocksource0/"
               "current_clocksource");
  Finding finding{"clock", Level::kOk, source.empty() ? "unknown" : source, ""};
  const bool slow =
      source == "hpet" || source == "acpi_pm" || source == "jiffies";
  if (slow) {
    finding.level = Level::kWarn;
    finding.fix = "a clock that is slow to read: boot with clocksource=tsc";
  } else if (!system.clock_is_synchronised()) {
    finding.level = Level::kWarn;
    absl::StrAppend(&finding.found, ", not synchronised");
    finding.fix =
        "run chrony or systemd-timesyncd: certificates and logs go by the "
        "time; leases do not";
  }
  findings.push_back(std::move(finding));
}

std::vector<Finding> Preflight(const PreflightOptions& options,
                               const PreflightSystem& system) {
  std::vector<Finding> findings;
  if (options.pool_bytes > 0) {
    CheckMemory(options, system, findings);
    CheckNuma(options, system, findings);
  }
  CheckNetwork(options, system, findings);
  CheckMapDirectory(options, system, findings);
  CheckClock(system, findings);
  return findings;
}

int RunPreflight(const CliOptions& options, const PreflightOptions& wanted) {
  Output output = FindingOutput();
  bool failed = false;
  for (const Finding& finding : Preflight(wanted, ThisMachine())) {
    failed = failed || finding.level == Level::kFail;
    AddFinding(finding, output);
  }
  output.Print(options.output, std::cout);
  return failed ? kExitUnhealthy : kExitOk;
}

}  // namespace farkv

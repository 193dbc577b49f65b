// The values of farkvctl's command line as they were typed, and their checks:
// what is wrong with one is found before anything is sent. Pure, but for
// reading the prompt file.
#ifndef FARKV_ADMIN_CLI_ARGUMENTS_H_
#define FARKV_ADMIN_CLI_ARGUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "admin_cli/options.h"
#include "admin_cli/preflight.h"

namespace farkv {

// Lists are comma-separated, and a flag that may be repeated has one element
// for each time.
struct CommonArguments {
  // Empty: the defaults; "none": nobody.
  std::vector<std::string> nodes, workers;
  std::string timeout = "60s";
  std::string watch_interval = "2s";
};

struct GenerateArguments {
  std::string worker = "127.0.0.1:7501";
  std::optional<std::string> prompt, prompt_file, prompt_ids, system;
  std::string seed;
  std::vector<std::string> stop_ids, forced_ids;
};

struct PreflightArguments {
  std::string role = "all";  // node, worker, all
  std::string t1_bytes = "1GiB", t2_bytes = "0B";
  std::string listen;  // empty: the role's defaults; "none"
};

// Each copies what it has checked into `options`. INVALID_ARGUMENT "--FLAG:
// what is wrong with which value"; NOT_FOUND for a prompt file that cannot be
// read.
absl::Status Finish(const CommonArguments& typed, CliOptions& options);
absl::Status Finish(const GenerateArguments& typed, GenerateOptions& options);
absl::Status Finish(const PreflightArguments& typed, PreflightOptions& options);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_ARGUMENTS_H_

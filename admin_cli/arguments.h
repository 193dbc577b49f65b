// The values of farkvctl's command line as they were typed, and their checks:
// what is wrong with one is found before anything is sent. Pure, but for
// reading the prompt file and the model's.
#ifndef FARKV_ADMIN_CLI_ARGUMENTS_H_
#define FARKV_ADMIN_CLI_ARGUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "admin_cli/options.h"
#include "admin_cli/plan.h"
#include "admin_cli/preflight.h"

namespace farkv {

// Lists are comma-separated, and a flag that may be repeated has one element
// for each time.
struct CommonArguments {
  // Empty: the defaults; "none": nobody.
  std::vector<std::string> nodes, workers;
  std::string timeout = "60s";
  std::string watch_interval = "2s";
  std::string top_interval = "2s";
};

struct GenerateArguments {
  std::string worker = "127.0.0.1:7501";
  std::optional<std::string> prompt, prompt_file, prompt_ids, system;
  std::string seed;
  std::vector<std::string> stop_ids, forced_ids, logit_bias;
  std::optional<std::string> messages_file;
};

struct PreflightArguments {
  std::string role = "all";  // node, worker, all
  std::string t1_bytes = "1GiB", t2_bytes = "0B";
  std::string listen;  // empty: the role's defaults; "none"
};

// Rates are guesses of a current accelerator and server; empty: not given.
struct PlanArguments {
  std::string model, hbm, hbm_ratio, weights_bytes;
  std::string kv_dtype = "bf16", t2_ratio = "0", weights_dtype = "bf16";
  std::string device = "cuda", exactness = "bitwise";
  bool mapped = false;
  std::string hbm_bandwidth = "2800GB/s", flops = "400TFLOPS";
  std::string map_bandwidth = "50GB/s", ddr = "200GB/s", link = "200Gb";
  std::string rtt = "20us", overhead = "1ms";
};

// INVALID_ARGUMENT outside 1ms to 24h.
absl::Status ReadTime(const char* flag, const std::string& typed,
                      absl::Duration& time);

// Each copies what it has checked into `options`. INVALID_ARGUMENT "--FLAG:
// what is wrong with which value"; NOT_FOUND for a prompt file that cannot be
// read.
absl::Status Finish(const CommonArguments& typed, CliOptions& options);
absl::Status Finish(const GenerateArguments& typed, GenerateOptions& options);
absl::Status Finish(const PreflightArguments& typed, PreflightOptions& options);
// NOT_FOUND, too, for a model's file that cannot be read. A plan can be made of
// the result.
absl::Status Finish(const PlanArguments& typed, PlanOptions& options);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_ARGUMENTS_H_

// What farkvctl was asked for, and its exit codes (OPS 2).
#ifndef FARKV_ADMIN_CLI_OPTIONS_H_
#define FARKV_ADMIN_CLI_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/rpc/tls_options.h"

namespace farkv {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPartial = 3;  // some of the peers failed
// No peer could be reached, or a check of preflight or verify failed.
inline constexpr int kExitUnhealthy = 4;

struct OutputOptions {
  std::string format = "table";  // table, wide, json, yaml, name
  std::string sort_by;           // a column; empty: as it comes
  bool no_headers = false;       // of tables

  // JSON or YAML, else text.
  bool IsDocument() const { return format == "json" || format == "yaml"; }
};

struct WatchOptions {
  bool enabled = false;
  absl::Duration interval = absl::Seconds(2);
  int64_t count = 0;  // rounds; 0: until it is stopped
};

struct TopOptions {
  absl::Duration interval = absl::Seconds(2);
  int64_t count = 0;   // rounds; 0: until it is stopped
  bool plain = false;  // no full screen
};

// Which pages; each empty: all.
struct PageOptions {
  std::string session;   // as in GetEvictions
  std::string tier;      // T1, T2
  std::string state;     // reserved, stored, quarantined
  int64_t limit = 1000;  // of each node; 0: none
};

struct CliOptions {
  std::vector<std::string> nodes;    // admin addresses of memory nodes
  std::vector<std::string> workers;  // admin addresses of workers
  OutputOptions output;
  WatchOptions watch;
  TopOptions top;
  absl::Duration timeout = absl::Seconds(5);
  TlsOptions tls;
};

struct GenerateOptions {
  std::string worker;  // address of the Generate API
  std::string prompt;  // used when there are no ids
  bool chat = false;   // the prompt is the user's message
  std::string system;  // with `chat`; empty: the model's default
  std::vector<int32_t> prompt_ids;
  std::string request_id;
  // Of a whole conversation, instead of a prompt: role and content.
  std::vector<std::pair<std::string, std::string>> messages;
  std::optional<float> temperature, top_p, min_p, hbm_ratio;
  std::optional<float> repetition_penalty, frequency_penalty, presence_penalty;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<int32_t> outputs;
  bool logprobs = false, prompt_logprobs = false;
  std::optional<int32_t> top_logprobs;
  std::optional<std::string> eviction;  // "none": nothing is destroyed
  std::optional<float> per_event_ratio, cumulative_cap, budget_ratio;
  std::optional<std::string> selection;
  std::optional<int64_t> budget_tokens;
  std::optional<int32_t> top_k, max_new_tokens, min_new_tokens;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop_texts;
  std::vector<int32_t> stop_ids;
  std::vector<int32_t> forced_ids;
  bool ignore_eos = false, include_stop = false;
  bool usage = false;  // print the usage and tier block to stderr
};

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_OPTIONS_H_

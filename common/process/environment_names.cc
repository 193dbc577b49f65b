#include "common/process/environment_names.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

constexpr absl::string_view kPrefix = "FARKV_";

// Of every program, so that one environment may serve several.
constexpr absl::string_view kNames[] = {"FARKV_ADMIN_LISTEN",
                                        "FARKV_BUDGET_RATIO",
                                        "FARKV_BUDGET_TOKENS",
                                        "FARKV_COLD",
                                        "FARKV_CONFIG",
                                        "FARKV_CORRUPT_ONE_ROW",
                                        "FARKV_CUMULATIVE_CAP",
                                        "FARKV_DATA_ADVERTISE",
                                        "FARKV_DATA_DEVICE",
                                        "FARKV_DATA_LISTEN",
                                        "FARKV_DATA_PORT_RANGE",
                                        "FARKV_DEVICE",
                                        "FARKV_DRAIN_GRACE",
                                        "FARKV_EVICTION",
                                        "FARKV_EXACTNESS",
                                        "FARKV_FAULTS",
                                        "FARKV_FETCH_TIMEOUT",
                                        "FARKV_GRANULARITY",
                                        "FARKV_HBM_RATIO",
                                        "FARKV_HEARTBEAT",
                                        "FARKV_HIGH_WATERMARK",
                                        "FARKV_HUGE_PAGES",
                                        "FARKV_HYSTERESIS",
                                        "FARKV_INTERVAL",
                                        "FARKV_KV_DTYPE",
                                        "FARKV_LEASE",
                                        "FARKV_LISTEN",
                                        "FARKV_LOG_FORMAT",
                                        "FARKV_LOG_LEVEL",
                                        "FARKV_MAP_DIR",
                                        "FARKV_MAX_LEASE",
                                        "FARKV_MAX_QUEUE",
                                        "FARKV_MAX_SEQUENCES",
                                        "FARKV_MEMORY_NODES",
                                        "FARKV_METRICS_LISTEN",
                                        "FARKV_MODEL",
                                        "FARKV_NODES",
                                        "FARKV_NODE_ID",
                                        "FARKV_NUMA_NODE",
                                        "FARKV_PER_EVENT_RATIO",
                                        "FARKV_PLACEMENT",
                                        "FARKV_PORT_FILE",
                                        "FARKV_PROMPT_PLACEMENT",
                                        "FARKV_PROTECT_PROMPT",
                                        "FARKV_RECENT",
                                        "FARKV_REPLICAS",
                                        "FARKV_SCRUB_RATE",
                                        "FARKV_SEED",
                                        "FARKV_SELECTION",
                                        "FARKV_SINKS",
                                        "FARKV_SKIP_ROW_CHECKS",
                                        "FARKV_SPREAD",
                                        "FARKV_STRIPE",
                                        "FARKV_T0_BYTES",
                                        "FARKV_T1_BYTES",
                                        "FARKV_T2_BITS",
                                        "FARKV_T2_BYTES",
                                        "FARKV_T2_RATIO",
                                        "FARKV_TENANT",
                                        "FARKV_TENANT_QUOTA",
                                        "FARKV_THREADS",
                                        "FARKV_TLS_CA",
                                        "FARKV_TLS_CERT",
                                        "FARKV_TLS_KEY",
                                        "FARKV_WORKER",
                                        "FARKV_WORKERS"};

// Of scripts and tests.
constexpr absl::string_view kOthers[] = {
    "FARKV_BUILD_FLAGS", "FARKV_FUZZ_CORPUS", "FARKV_JOBS",
    "FARKV_PYTHON",      "FARKV_SMOLLM2",     "FARKV_SYSTEM_PYTHON",
    "FARKV_TOKENIZERS",  "FARKV_WRITE_GOLDEN"};

// Kubernetes tells a pod of the Services beside it, one of which may be called
// farkv-worker: FARKV_WORKER_SERVICE_HOST, FARKV_WORKER_PORT_7501_TCP_ADDR.
// FARKV_WORKER_PORT alone may be somebody's mistake.
bool IsOfAService(absl::string_view name,
                  const std::vector<std::string>& names) {
  if (absl::StrContains(name, "_SERVICE_HOST") ||
      absl::StrContains(name, "_SERVICE_PORT")) {
    return true;
  }
  if (absl::EndsWith(name, "_PORT")) {
    const std::string host =
        absl::StrCat(absl::StripSuffix(name, "PORT"), "SERVICE_HOST");
    return std::find(names.begin(), names.end(), host) != names.end();
  }
  const size_t port = name.find("_PORT_");
  const size_t digit = port + std::string("_PORT_").size();
  return port != absl::string_view::npos && digit < name.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(name[digit]));
}

// How many letters to insert, drop or replace.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// Empty when none is near.
absl::string_view Nearest(absl::string_view name) {
  constexpr size_t kFarthest = 3;
  absl::string_view nearest;
  size_t least = kFarthest + 1;
  for (absl::string_view known : kNames) {
    const size_t distance = Distance(name, known);
    if (distance < least) {
      least = distance;
      nearest = known;
    }
  }
  return nearest;
}

}  // namespace

bool IsFarkvVariable(absl::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) !=
         std::end(kNames);
}

std::vector<std::string> EnvironmentVariables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text = *variable;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::vector<std::string> VariableWarnings(
    const std::vector<std::string>& names) {
  std::vector<std::string> warnings;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kPrefix) || IsFarkvVariable(name) ||
        absl::StartsWith(name, "FARKV_TEST_") || IsOfAService(name, names) ||
        std::find(std::begin(kOthers), std::end(kOthers), name) !=
            std::end(kOthers)) {
      continue;
    }
    const absl::string_view nearest = Nearest(name);
    warnings.push_back(absl::StrCat(
        "environment variable ", ShownText(name),
        " is of no flag and has no effect",
        nearest.empty() ? absl::StrCat("; --help lists the flags")
                        : absl::StrCat("; is ", nearest, " meant?")));
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
}

}  // namespace farkv

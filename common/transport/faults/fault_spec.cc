#include "common/transport/faults/fault_spec.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

absl::Status Bad(absl::string_view item, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("fault spec: \"", item, "\" must be ", expected));
}

absl::Status ParseProbability(absl::string_view item, absl::string_view text,
                              double* out) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value >= 0.0 && value <= 1.0)) {
    return Bad(item, "a probability in [0, 1], as in drop=0.01");
  }
  *out = value;
  return absl::OkStatus();
}

absl::Status ParseTimed(absl::string_view item, absl::string_view text,
                        double* probability, absl::Duration* duration) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  FARKV_RETURN_IF_ERROR(ParseProbability(item, parts.first, probability));
  const absl::StatusOr<absl::Duration> parsed = ParseDuration(parts.second);
  if (!parsed.ok()) {
    return Bad(item, "a probability and a duration, as in delay=0.02:5ms");
  }
  *duration = *parsed;
  return absl::OkStatus();
}

absl::Status ParseItem(absl::string_view item, absl::string_view key,
                       absl::string_view value, FaultSpec* spec) {
  const std::pair<absl::string_view, double*> probabilities[] = {
      {"drop", &spec->drop},         {"duplicate", &spec->duplicate},
      {"truncate", &spec->truncate}, {"flip", &spec->flip},
      {"reorder", &spec->reorder},
  };
  for (const auto& [name, out] : probabilities) {
    if (key == name) return ParseProbability(item, value, out);
  }
  if (key == "delay") {
    return ParseTimed(item, value, &spec->delay, &spec->delay_for);
  }
  if (key == "stall") {
    return ParseTimed(item, value, &spec->stall, &spec->stall_for);
  }
  if (key == "seed") {
    return absl::SimpleAtoi(value, &spec->seed)
               ? absl::OkStatus()
               : Bad(item, "a whole number, as in seed=7");
  }
  if (key == "fail-nth") {
    return absl::SimpleAtoi(value, &spec->fail_nth) && spec->fail_nth > 0
               ? absl::OkStatus()
               : Bad(item, "a whole number from 1, as in fail-nth=100");
  }
  return Bad(item,
             "one of seed, drop, duplicate, truncate, flip, reorder, delay, "
             "stall, fail-nth");
}

}  // namespace

absl::StatusOr<FaultSpec> ParseFaultSpec(absl::string_view text) {
  FaultSpec spec;
  if (text.empty()) return spec;
  std::set<std::string> seen;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (!seen.insert(std::string(parts.first)).second) {
      return Bad(item, "given once");
    }
    FARKV_RETURN_IF_ERROR(ParseItem(item, parts.first, parts.second, &spec));
  }
  return spec;
}

}  // namespace farkv

// Names and checks of the plain values of step_time.h.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/step_time.h"

namespace farkv {
namespace {

absl::Status CheckPositive(const char* field, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", must be finite and above 0"));
}

absl::Status CheckTime(const char* field, absl::Duration value) {
  if (value >= absl::ZeroDuration() && value < absl::InfiniteDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", absl::FormatDuration(value),
                   ", must be finite and not below 0"));
}

}  // namespace

absl::Status Rates::Validate() const {
  FARKV_RETURN_IF_ERROR(
      CheckPositive("weight_bytes", static_cast<double>(weight_bytes)));
  FARKV_RETURN_IF_ERROR(
      CheckPositive("weight_bytes_per_second", weight_bytes_per_second));
  FARKV_RETURN_IF_ERROR(CheckPositive("flops_per_second", flops_per_second));
  FARKV_RETURN_IF_ERROR(
      CheckPositive("attention_bytes_per_second", attention_bytes_per_second));
  FARKV_RETURN_IF_ERROR(
      CheckPositive("mapped_bytes_per_second", mapped_bytes_per_second));
  FARKV_RETURN_IF_ERROR(
      CheckPositive("node_bytes_per_second", node_bytes_per_second));
  FARKV_RETURN_IF_ERROR(
      CheckPositive("link_bytes_per_second", link_bytes_per_second));
  FARKV_RETURN_IF_ERROR(CheckTime("round_trip", round_trip));
  return CheckTime("overhead", overhead);
}

const char* StepModeName(StepMode mode) {
  switch (mode) {
    case StepMode::kFullCache:
      return "full cache";
    case StepMode::kMap:
      return "map";
    case StepMode::kPrefetch:
      return "prefetch";
    case StepMode::kPushdown:
      return "pushdown";
  }
  return "unknown";
}

const char* BottleneckName(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kOverhead:
      return "overhead";
    case Bottleneck::kWeights:
      return "weights";
    case Bottleneck::kProducts:
      return "products";
    case Bottleneck::kAttention:
      return "attention";
    case Bottleneck::kMap:
      return "map";
    case Bottleneck::kLink:
      return "link";
    case Bottleneck::kNodeMemory:
      return "node memory";
    case Bottleneck::kRoundTrips:
      return "round trips";
    case Bottleneck::kStores:
      return "stores";
  }
  return "unknown";
}

double ModeTime::TokensPerSecond(int64_t running) const {
  return possible ? static_cast<double>(running) / absl::ToDoubleSeconds(step)
                  : 0;
}

const ModeTime& StepPlan::Of(StepMode mode) const {
  switch (mode) {
    case StepMode::kFullCache:
      break;
    case StepMode::kMap:
      return map;
    case StepMode::kPrefetch:
      return prefetch;
    case StepMode::kPushdown:
      return pushdown;
  }
  return full;
}

}  // namespace farkv

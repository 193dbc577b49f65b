#include "common/policy/ranking.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/window_mass.h"

namespace farkv {
namespace {

absl::Status RequireWindow(const EvictionInput& input, int64_t num_candidates,
                           const WindowSettings& settings, const char* policy) {
  FARKV_RETURN_IF_ERROR(RequireKeys(input, policy));
  const WindowQueries& window = input.window;
  if (window.data.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(policy, " needs the last queries or attention mass"));
  }
  if (window.num_queries > settings.window) {
    return absl::InvalidArgumentError(
        absl::StrCat(policy, ": ", window.num_queries,
                     " queries in a window of ", settings.window));
  }
  const int64_t younger = input.num_rows() - num_candidates;
  if (settings.scorer == WindowScorer::kCausalMean &&
      younger < window.num_queries) {
    return absl::InvalidArgumentError(
        absl::StrCat(policy, ": ", window.num_queries, " queries but only ",
                     younger, " rows of the window"));
  }
  return absl::OkStatus();
}

}  // namespace

RankedRows StartRanking(const EvictionInput& input, int64_t sinks,
                        int64_t recent) {
  RankedRows ranked;
  ranked.rows.resize(input.positions.size());
  for (size_t i = 0; i < ranked.rows.size(); ++i) {
    const int64_t position = input.positions[i];
    ranked.rows[i].position = position;
    ranked.rows[i].pinned = (!input.pinned.empty() && input.pinned[i] != 0) ||
                            position < sinks ||
                            position >= input.num_tokens - recent;
  }
  return ranked;
}

absl::Status RequireKeys(const EvictionInput& input, const char* policy) {
  FARKV_RETURN_IF_ERROR(input.Validate());
  if (input.keys.rows.size() == input.positions.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(policy, " needs the keys"));
}

absl::Status RequireValues(const EvictionInput& input, const char* policy) {
  FARKV_RETURN_IF_ERROR(input.Validate());
  if (input.values.rows.size() == input.positions.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(policy, " needs the values"));
}

absl::Status WindowSettings::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("window", window, 1, 4096));
  FARKV_RETURN_IF_ERROR(CheckRange("kernel", kernel, 1, 255));
  if (kernel % 2 == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("kernel is ", kernel, ", must be odd"));
}

absl::StatusOr<std::vector<float>> CandidateMass(const EvictionInput& input,
                                                 const WindowSettings& settings,
                                                 const char* policy) {
  FARKV_RETURN_IF_ERROR(input.Validate());
  FARKV_RETURN_IF_ERROR(settings.Validate());
  const int64_t count = input.NumOlder(settings.window);
  if (!input.mass.empty()) {
    if (static_cast<int64_t>(input.mass.size()) >= count) {
      return std::vector<float>(input.mass.begin(), input.mass.begin() + count);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(policy, ": ", input.mass.size(), " masses for ", count,
                     " rows older than the window"));
  }
  if (count == 0) return std::vector<float>();
  FARKV_RETURN_IF_ERROR(RequireWindow(input, count, settings, policy));
  const HeadPanels keys = MakePanels(input.keys);
  const WindowQueries& window = input.window;
  switch (settings.scorer) {
    case WindowScorer::kCausalMean:
      return MeanPooledMass(CausalWindowSums(window, keys, count), window,
                            settings.kernel);
    case WindowScorer::kCandidateMean:
      return MeanPooledMass(CandidateWindowSums(window, keys, count), window,
                            settings.kernel);
    case WindowScorer::kGroupMax:
      break;
  }
  std::vector<float> mass = GroupMaxWindowSums(window, keys, count);
  for (float& m : mass) m = m / static_cast<float>(window.num_queries);
  return PoolMax(mass, settings.kernel);
}

}  // namespace farkv

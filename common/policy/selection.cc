#include "common/policy/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/logarithm.h"
#include "common/policy/placement_settings.h"

namespace farkv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Largest bound that is finite; 0 when none is.
float LargestFinite(const std::vector<float>& bounds) {
  float largest = -kInfinity;
  for (const float bound : bounds) {
    if (std::isfinite(bound) && bound > largest) largest = bound;
  }
  return largest == -kInfinity ? 0 : largest;
}

}  // namespace

const char* SelectionPolicyName(SelectionPolicy policy) {
  switch (policy) {
    case SelectionPolicy::kNone:
      return "none";
    case SelectionPolicy::kQuest:
      return "quest";
  }
  return "unknown";
}

absl::StatusOr<SelectionPolicy> ParseSelectionPolicy(absl::string_view name) {
  for (const SelectionPolicy policy :
       {SelectionPolicy::kNone, SelectionPolicy::kQuest}) {
    if (name == SelectionPolicyName(policy)) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("selection is \"", name, "\", must be none or quest"));
}

std::vector<float> QuestScores(const KeyBounds& bounds,
                               const GroupScoreQuery& query) {
  const auto dim = static_cast<size_t>(bounds.dim());
  std::vector<float> scores(static_cast<size_t>(bounds.num_groups()),
                            -kInfinity);
  for (size_t head = 0; head < static_cast<size_t>(query.num_heads); ++head) {
    const std::vector<float> of_head =
        bounds.UpperBounds(query.queries.subspan(head * dim, dim));
    const float largest = LargestFinite(of_head);
    for (size_t group = 0; group < scores.size(); ++group) {
      const float score = of_head[group] - largest;
      // A NaN of one head stays.
      if (score > scores[group] || std::isnan(score)) scores[group] = score;
    }
  }
  return scores;
}

absl::Status SelectionSettings::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("group_tokens", group_tokens, 1, 4096));
  FARKV_RETURN_IF_ERROR(
      CheckRange("budget_tokens", budget_tokens, 1, int64_t{1} << 32));
  FARKV_RETURN_IF_ERROR(
      CheckRange("budget_ratio per 10,000", budget_ratio, 0, kRatioOne));
  FARKV_RETURN_IF_ERROR(CheckRange("dense_layers", dense_layers, 0, 1024));
  return CheckRange("min_groups", min_groups, 1, int64_t{1} << 32);
}

int64_t SelectionSettings::NumSelected(int32_t layer,
                                       int64_t num_groups) const {
  if (policy == SelectionPolicy::kNone || layer < dense_layers) {
    return num_groups;
  }
  const int64_t budget = budget_ratio > 0 ? ShareOf(budget_ratio, num_groups)
                                          : budget_tokens / group_tokens;
  return std::min(num_groups, std::max(min_groups, budget));
}

std::vector<int64_t> SelectGroups(std::span<const float> scores,
                                  int64_t num_selected) {
  std::vector<int64_t> groups;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != -kInfinity) groups.push_back(static_cast<int64_t>(i));
  }
  const auto before = [&](int64_t a, int64_t b) {
    const auto rank = [&](int64_t group) {
      if (group + 1 == static_cast<int64_t>(scores.size())) return 0;
      return scores[static_cast<size_t>(group)] < kInfinity ? 2 : 1;
    };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    const float score_a = scores[static_cast<size_t>(a)];
    const float score_b = scores[static_cast<size_t>(b)];
    if (rank(a) == 2 && score_a != score_b) return score_a > score_b;
    return a > b;
  };
  const auto count = std::min(groups.size(), static_cast<size_t>(num_selected));
  const auto middle = groups.begin() + static_cast<int64_t>(count);
  if (middle != groups.end()) {
    std::nth_element(groups.begin(), middle, groups.end(), before);
  }
  groups.resize(count);
  std::sort(groups.begin(), groups.end());
  return groups;
}

bool IsNegligible(float bound, float scale, int32_t rows, float lse,
                  float tau) {
  return static_cast<double>(bound) * scale + NaturalLog(rows) <
         static_cast<double>(lse) - tau;
}

std::vector<float> GateFeatures(std::span<const float> keys, int32_t dim) {
  const auto width = static_cast<size_t>(dim);
  const size_t rows = keys.size() / width;
  std::vector<float> features(3 * width);
  for (size_t c = 0; c < width; ++c) {
    float high = keys[c], low = keys[c], sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      const float x = keys[r * width + c];
      high = std::max(high, x);
      low = std::min(low, x);
      sum = sum + x;
    }
    features[c] = high;
    features[width + c] = low;
    features[2 * width + c] = sum / static_cast<float>(rows);
  }
  return features;
}

}  // namespace farkv

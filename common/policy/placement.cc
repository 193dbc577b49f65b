#include "common/policy/placement.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// Extra binary digits of an age-normalised score: a division by up to 2^20
// queries still tells scores of 2^-40 apart.
constexpr int kAgeDigits = 20;

// One group while the plan is made. The rank is the mean sum / live, kept as a
// fraction so that no comparison rounds.
struct Group {
  int64_t index = 0;
  int64_t live = 0;
  absl::int128 sum = 0;
  bool is_protected = false;
  bool is_tail = false;
  int64_t in_t0 = 0;  // live tokens that are there now

  bool all_in_t0() const { return in_t0 == live; }
};

class Planner {
 public:
  Planner(const PlacementSettings& settings, const PlacementInput& input)
      : settings_(settings),
        input_(input),
        num_tokens_(static_cast<int64_t>(input.tiers.size())) {}

  PlacementPlan Plan() {
    PlacementPlan plan;
    plan.granularity = settings_.granularity;
    plan.num_evicted = input_.num_evicted;
    std::vector<Group> candidates;
    std::vector<Group> groups = Collect();
    plan.tiers.assign(groups.size(), Tier::kT1);
    for (const Group& group : groups) Sort(group, plan, candidates);
    plan.n_hbm = ShareOf(
        settings_.hbm_ratio,
        std::max<int64_t>(0, plan.unprotected_tokens - input_.num_evicted));
    Fill(candidates, plan);
    for (const Group& group : groups) AddMove(group, plan);
    return plan;
  }

 private:
  bool IsProtected(int64_t position) const {
    if (settings_.prompt_in_t0 && position < input_.prompt_tokens) return true;
    if (position >= num_tokens_ - settings_.recent) return true;
    return position >= input_.prompt_tokens &&
           position < input_.prompt_tokens + settings_.sinks;
  }

  // What a live token adds to its group's sum.
  absl::int128 Rank(int64_t position) const {
    const int64_t score = input_.scores[static_cast<size_t>(position)];
    switch (settings_.policy) {
      case PlacementPolicy::kCumulativeAttention:
        return score;
      case PlacementPolicy::kAgeNormalised: {
        const int64_t first = std::max(position, input_.first_scored_query);
        const int64_t queries = std::max<int64_t>(1, num_tokens_ - first);
        return (absl::int128(score) << kAgeDigits) / queries;
      }
      case PlacementPolicy::kRecency:
        return position;
      case PlacementPolicy::kRandom:
        return 0;  // one draw for the whole group: GroupDraw()
    }
    return 0;
  }

  absl::int128 GroupDraw(const Group& group) const {
    const auto first = static_cast<uint64_t>(group.index) *
                       static_cast<uint64_t>(settings_.granularity);
    return absl::int128(CounterDraw(settings_.seed,
                                    {input_.request, input_.event, first})) *
           group.live;
  }

  absl::int128 Hysteresis() const {
    switch (settings_.policy) {
      case PlacementPolicy::kCumulativeAttention:
        return settings_.hysteresis;
      case PlacementPolicy::kAgeNormalised:
        return absl::int128(settings_.hysteresis) << kAgeDigits;
      case PlacementPolicy::kRecency:
      case PlacementPolicy::kRandom:
        return 0;
    }
    return 0;
  }

  Group CollectGroup(int64_t index) const {
    Group group;
    group.index = index;
    const int64_t begin = index * settings_.granularity;
    const int64_t end = std::min(begin + settings_.granularity, num_tokens_);
    group.is_tail = end > input_.sealed_tokens;
    for (int64_t position = begin; position < end; ++position) {
      group.is_protected |= IsProtected(position);
      const Tier tier = input_.tiers[static_cast<size_t>(position)];
      if (tier == Tier::kT3) continue;
      ++group.live;
      group.sum += Rank(position);
      if (tier == Tier::kT0) ++group.in_t0;
    }
    if (settings_.policy == PlacementPolicy::kRandom) {
      group.sum = GroupDraw(group);
    }
    if (group.all_in_t0()) group.sum += Hysteresis() * group.live;
    return group;
  }

  std::vector<Group> Collect() const {
    const int64_t g = settings_.granularity;
    std::vector<Group> groups;
    groups.reserve(static_cast<size_t>((num_tokens_ + g - 1) / g));
    for (int64_t begin = 0; begin < num_tokens_; begin += g) {
      groups.push_back(CollectGroup(begin / g));
    }
    return groups;
  }

  // Settles the groups that need no ranking; the rest are candidates.
  static void Sort(const Group& group, PlacementPlan& plan,
                   std::vector<Group>& candidates) {
    Tier& target = plan.tiers[static_cast<size_t>(group.index)];
    if (group.live == 0) {
      target = Tier::kT3;
    } else if (group.is_protected) {
      target = Tier::kT0;
      plan.protected_tokens += group.live;
    } else {
      plan.unprotected_tokens += group.live;
      if (group.is_tail) {
        target = Tier::kT0;
        plan.hbm_tokens += group.live;
      } else {
        candidates.push_back(group);
      }
    }
  }

  // With hysteresis, a group in T0 has its bonus in `sum` and wins a tie: the
  // challenger must exceed it by more than the hysteresis.
  bool Better(const Group& a, const Group& b) const {
    const absl::int128 left = a.sum * b.live;
    const absl::int128 right = b.sum * a.live;
    if (left != right) return left > right;
    if (Hysteresis() != 0 && a.all_in_t0() != b.all_in_t0())
      return a.all_in_t0();
    return a.index > b.index;
  }

  void Fill(std::vector<Group>& candidates, PlacementPlan& plan) const {
    std::sort(candidates.begin(), candidates.end(),
              [this](const Group& a, const Group& b) { return Better(a, b); });
    for (const Group& group : candidates) {
      if (plan.hbm_tokens + group.live > plan.n_hbm) break;
      plan.hbm_tokens += group.live;
      plan.tiers[static_cast<size_t>(group.index)] = Tier::kT0;
    }
  }

  static void AddMove(const Group& group, PlacementPlan& plan) {
    const Tier target = plan.tiers[static_cast<size_t>(group.index)];
    if (target == Tier::kT0 && !group.all_in_t0()) {
      plan.promote.push_back(group.index);
      plan.promoted_tokens += group.live - group.in_t0;
    } else if (target == Tier::kT1 && group.in_t0 > 0) {
      plan.demote.push_back(group.index);
      plan.demoted_tokens += group.in_t0;
    }
  }

  const PlacementSettings& settings_;
  const PlacementInput& input_;
  const int64_t num_tokens_;
};

absl::Status CheckCount(const char* field, int64_t value, int64_t high) {
  if (value >= 0 && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "placement: ", field, " is ", value, ", must lie in [0, ", high, "]"));
}

}  // namespace

absl::StatusOr<PlacementPlan> PlanPlacement(const PlacementSettings& settings,
                                            const PlacementInput& input) {
  FARKV_RETURN_IF_ERROR(settings.ValidateForPlan());
  if (input.scores.size() != input.tiers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement: ", input.scores.size(), " scores but ",
                     input.tiers.size(), " tiers"));
  }
  const auto num_tokens = static_cast<int64_t>(input.tiers.size());
  FARKV_RETURN_IF_ERROR(
      CheckCount("prompt_tokens", input.prompt_tokens, num_tokens));
  FARKV_RETURN_IF_ERROR(
      CheckCount("sealed_tokens", input.sealed_tokens, num_tokens));
  FARKV_RETURN_IF_ERROR(
      CheckCount("first_scored_query", input.first_scored_query, num_tokens));
  FARKV_RETURN_IF_ERROR(
      CheckCount("num_evicted", input.num_evicted, num_tokens));
  return Planner(settings, input).Plan();
}

}  // namespace farkv

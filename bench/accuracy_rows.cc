#include "bench/accuracy_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace farkv::bench {
namespace {

using Named = std::pair<std::string, DestructionPolicy>;

WindowSettings Window(WindowSettings window, const PolicySizes& sizes) {
  window.window = std::min(window.window, static_cast<int32_t>(sizes.recent));
  return window;
}

// The baselines and the papers' policies, windows and intervals scaled.
std::vector<Named> ScaledPolicies(const PolicySizes& sizes) {
  SnapKvPolicy snap_rkv = SnapKvPolicy::Rkv();
  snap_rkv.interval = sizes.interval;
  snap_rkv.window = Window(snap_rkv.window, sizes);
  SnapKvPolicy snap_vase = SnapKvPolicy::Vase();
  snap_vase.interval = sizes.interval;
  snap_vase.window = Window(snap_vase.window, sizes);
  RkvPolicy official = RkvPolicy::Official();
  official.interval = sizes.interval;
  official.window = Window(official.window, sizes);
  RkvPolicy mean = RkvPolicy::Mean();
  mean.interval = sizes.interval;
  mean.window = Window(mean.window, sizes);
  VaseAttnVPolicy attn_v;
  attn_v.window = Window(attn_v.window, sizes);
  return {
      {"recency", RecencyPolicy{.interval = sizes.interval}},
      {"random", RandomPolicy{.recent = sizes.recent}},
      {"random-shared", RandomPolicy{.recent = sizes.recent, .shared = true}},
      {"attention", TiersPolicy{sizes.interval, sizes.sinks, sizes.recent}},
      {"h2o", H2oPolicy{}},
      {"streaming-llm", StreamingLlmPolicy{.sinks = sizes.sinks}},
      {"snap-kv-rkv", snap_rkv},
      {"snap-kv-vase", snap_vase},
      {"rkv-official", official},
      {"rkv-mean", mean},
      {"cur-dkv", CurDkvPolicy{.buffer = sizes.recent, .sinks = sizes.sinks}},
      {"vase-attn-v", attn_v},
      {"vase-dkv",
       VaseDkvPolicy{.buffer = sizes.recent, .sinks = sizes.sinks}}};
}

AccuracyRow Tiers(int percent) {
  AccuracyRow row;
  row.name = absl::StrCat("tiers-", percent);
  row.hbm_ratio = percent * 100;
  row.measures_ranges = percent == 10;
  return row;
}

AccuracyRow Compressed(int bits) {
  AccuracyRow row = Tiers(0);
  row.name = absl::StrCat("t2-", bits, "bit");
  row.t2_ratio = kRatioOne;
  row.t2_bits = bits;
  return row;
}

AccuracyRow Rounded(const std::string& name, RoundingScheme scheme) {
  AccuracyRow row = Tiers(0);
  row.name = name;
  row.rounding = scheme;
  return row;
}

AccuracyRow Bounded(const Named& policy, const std::string& bound,
                    EvictionBudget bounds) {
  AccuracyRow row;
  row.name = absl::StrCat(policy.first, "-", bound);
  row.policy = policy.second;
  row.budget.bounds = bounds;
  return row;
}

AccuracyRow Fixed(const Named& policy, int percent) {
  AccuracyRow row;
  row.name = absl::StrCat(policy.first, "-fixed-", percent);
  row.policy = policy.second;
  row.budget.kind = BudgetKind::kFixed;
  row.share = percent * 100;
  return row;
}

AccuracyRow Proportional(const Named& policy, int percent) {
  AccuracyRow row;
  row.name = absl::StrCat(policy.first, "-prop-", percent);
  row.policy = policy.second;
  row.budget.kind = BudgetKind::kProportional;
  row.budget.ratio = percent * 100;
  return row;
}

AccuracyRow Quest(int percent, const PolicySizes& sizes) {
  AccuracyRow row;
  row.name = absl::StrCat("quest-", percent);
  row.selection.policy = SelectionPolicy::kQuest;
  row.selection.budget_ratio = percent * 100;
  row.selection.group_tokens = static_cast<int32_t>(sizes.interval);
  return row;
}

// The fixed rows under the other ways to count positions, for policies whose
// decisions do not look at keys, so that the same rows are destroyed.
void AddPositionModes(const std::vector<Named>& policies,
                      std::vector<AccuracyRow>& rows) {
  for (const Named& policy : policies) {
    if (policy.first != "recency" && policy.first != "random-shared" &&
        policy.first != "streaming-llm") {
      continue;
    }
    for (int percent : {50, 25}) {
      AccuracyRow& mixed = rows.emplace_back(Fixed(policy, percent));
      mixed.name += "-mixed";
      mixed.positions = PositionMode::kMixed;
      AccuracyRow& compact = rows.emplace_back(Fixed(policy, percent));
      compact.name += "-compact";
      compact.positions = PositionMode::kCompact;
    }
  }
}

}  // namespace

const char* AccuracyRow::budget_kind() const {
  if (selects()) return "selection";
  return policy.has_value() ? BudgetKindName(budget.kind) : "none";
}

DestructionSettings AccuracyRow::Destruction(int64_t prompt_tokens,
                                             int64_t chain_tokens) const {
  DestructionSettings settings;
  settings.policy = *policy;
  settings.budget = budget;
  if (budget.kind == BudgetKind::kFixed) {
    settings.budget.tokens = prompt_tokens + ShareOf(share, chain_tokens);
  }
  settings.interval = sizes.interval;
  settings.sinks = sizes.sinks;
  settings.recent = sizes.recent;
  return settings;
}

std::vector<AccuracyRow> AllAccuracyRows(const PolicySizes& sizes) {
  using Kind = RoundingScheme::Kind;
  std::vector<AccuracyRow> rows(1);
  rows.front().name = "full";
  for (int percent : {70, 50, 30, 10}) rows.push_back(Tiers(percent));
  for (int bits : {8, 4}) rows.push_back(Compressed(bits));
  rows.push_back(Rounded("t2-8bit-no-exceptions", {Kind::kNoExceptions, 8}));
  rows.push_back(Rounded("t2-8bit-one-range", {Kind::kOneRange, 8}));
  rows.push_back(Rounded("t2-4bit-one-range", {Kind::kOneRange, 4}));
  const std::vector<Named> policies = ScaledPolicies(sizes);
  for (const Named& policy : policies) {
    // The hierarchy's bounds, by cumulative attention and at random.
    if (policy.first != "attention" && policy.first != "random") continue;
    rows.push_back(Bounded(policy, "cap-3", {kRatioOne, 300}));
    rows.push_back(Bounded(policy, "cap-10", {kRatioOne, 1000}));
    rows.push_back(Bounded(policy, "event-3", {300, kRatioOne}));
    rows.push_back(Bounded(policy, "event-10", {1000, kRatioOne}));
  }
  for (const Named& policy : policies) {
    rows.push_back(Fixed(policy, 50));
    rows.push_back(Fixed(policy, 25));
    rows.push_back(Proportional(policy, 50));
  }
  AddPositionModes(policies, rows);
  for (int percent : {50, 25, 10}) rows.push_back(Quest(percent, sizes));
  for (AccuracyRow& row : rows) row.sizes = sizes;
  return rows;
}

absl::StatusOr<std::vector<AccuracyRow>> ChooseAccuracyRows(
    const std::vector<std::string>& names, const PolicySizes& sizes) {
  const std::vector<AccuracyRow> all = AllAccuracyRows(sizes);
  std::vector<bool> chosen(all.size(), false);
  chosen.front() = true;
  for (const std::string& name : names) {
    absl::string_view prefix = name;
    const bool is_prefix = absl::ConsumeSuffix(&prefix, "*");
    bool found = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_prefix ? !absl::StartsWith(all[i].name, prefix)
                    : all[i].name != name) {
        continue;
      }
      chosen[i] = found = true;
    }
    if (found) continue;
    const auto add = [](std::string* out, const AccuracyRow& row) {
      *out += row.name;
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "row \"", name, "\" must be one of ", absl::StrJoin(all, ", ", add)));
  }
  std::vector<AccuracyRow> rows;
  for (size_t i = 0; i < all.size(); ++i) {
    if (chosen[i]) rows.push_back(all[i]);
  }
  return rows;
}

}  // namespace farkv::bench

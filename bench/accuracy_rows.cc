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

WindowSettings Window(WindowSettings window) {
  window.window = std::min(window.window, static_cast<int32_t>(kRecent));
  return window;
}

// The baselines and the papers' policies, windows and intervals scaled.
std::vector<Named> ScaledPolicies() {
  SnapKvPolicy snap_rkv = SnapKvPolicy::Rkv();
  snap_rkv.interval = kInterval;
  snap_rkv.window = Window(snap_rkv.window);
  SnapKvPolicy snap_vase = SnapKvPolicy::Vase();
  snap_vase.interval = kInterval;
  snap_vase.window = Window(snap_vase.window);
  RkvPolicy official = RkvPolicy::Official();
  official.interval = kInterval;
  official.window = Window(official.window);
  RkvPolicy mean = RkvPolicy::Mean();
  mean.interval = kInterval;
  mean.window = Window(mean.window);
  VaseAttnVPolicy attn_v;
  attn_v.window = Window(attn_v.window);
  return {{"recency", RecencyPolicy{.interval = kInterval}},
          {"random", RandomPolicy{.recent = kRecent}},
          {"random-shared", RandomPolicy{.recent = kRecent, .shared = true}},
          {"attention", TiersPolicy{kInterval, kSinks, kRecent}},
          {"h2o", H2oPolicy{}},
          {"streaming-llm", StreamingLlmPolicy{.sinks = kSinks}},
          {"snap-kv-rkv", snap_rkv},
          {"snap-kv-vase", snap_vase},
          {"rkv-official", official},
          {"rkv-mean", mean},
          {"cur-dkv", CurDkvPolicy{.buffer = kRecent, .sinks = kSinks}},
          {"vase-attn-v", attn_v},
          {"vase-dkv", VaseDkvPolicy{.buffer = kRecent, .sinks = kSinks}}};
}

AccuracyRow Tiers(int percent) {
  AccuracyRow row;
  row.name = absl::StrCat("tiers-", percent);
  row.hbm_ratio = percent * 100;
  return row;
}

AccuracyRow Compressed(int bits) {
  AccuracyRow row = Tiers(0);
  row.name = absl::StrCat("t2-", bits, "bit");
  row.t2_ratio = kRatioOne;
  row.t2_bits = bits;
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

}  // namespace

const char* AccuracyRow::budget_kind() const {
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
  settings.interval = kInterval;
  settings.sinks = kSinks;
  settings.recent = kRecent;
  return settings;
}

std::vector<AccuracyRow> AllAccuracyRows() {
  std::vector<AccuracyRow> rows(1);
  rows.front().name = "full";
  for (int percent : {70, 50, 30, 10}) rows.push_back(Tiers(percent));
  for (int bits : {8, 4}) rows.push_back(Compressed(bits));
  const std::vector<Named> policies = ScaledPolicies();
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
  return rows;
}

absl::StatusOr<std::vector<AccuracyRow>> ChooseAccuracyRows(
    const std::vector<std::string>& names) {
  const std::vector<AccuracyRow> all = AllAccuracyRows();
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

#include "gpu_worker/service/tier_options_codec.h"

#include <cmath>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

using worker::v1::TierOptions;

// Per 10,000.
absl::StatusOr<int32_t> ReadRatio(const char* field, float ratio) {
  if (ratio >= 0.0f && ratio <= 1.0f) {
    return static_cast<int32_t>(
        std::lround(static_cast<double>(ratio) * kRatioOne));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tiers.", field, " is ", ratio, ", must lie in [0, 1]"));
}

absl::Status CheckServed(const TierOptions& tiers) {
  const char* const why =
      tiers.has_granularity()
          ? "tiers.granularity is set; the lines of a worker's T0 have one "
            "size for all requests, its --granularity"
      : tiers.has_cold()
          ? "tiers.cold is set; cold rows of all requests of a step come from "
            "a node in one way, as --cold says"
          : nullptr;
  return why == nullptr ? absl::OkStatus() : absl::UnimplementedError(why);
}

bool HasBudget(const TierOptions& tiers) {
  return tiers.has_per_event_ratio() || tiers.has_cumulative_cap() ||
         tiers.has_budget_tokens() || tiers.has_budget_ratio();
}

// A field is of the worker's kind of budget.
absl::Status CheckKind(const char* field, BudgetKind kind,
                       const DestructionBudget& limit) {
  if (kind == limit.kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tiers.", field, " is set: a budget of the kind ", BudgetKindName(kind),
      "; this worker's flags allow the kind ", BudgetKindName(limit.kind)));
}

absl::Status CheckAtMost(const char* field, int64_t value, int64_t limit) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tiers.", field, " is ", value,
                   " per 10,000, this worker allows at most ", limit));
}

absl::Status CheckAtLeast(const char* field, const char* unit, int64_t value,
                          int64_t limit) {
  if (value >= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tiers.", field, " is ", value, unit,
                   ", this worker allows no less than ", limit));
}

absl::Status ReadPlacement(const TierOptions& tiers,
                           const EngineOptions& options,
                           GenerationRequest& request) {
  if (tiers.has_hbm_ratio()) {
    constexpr char kField[] = "hbm_ratio";
    FARKV_ASSIGN_OR_RETURN(request.hbm_ratio,
                           ReadRatio(kField, tiers.hbm_ratio()));
    FARKV_RETURN_IF_ERROR(
        CheckAtMost(kField, *request.hbm_ratio, options.placement.hbm_ratio));
  }
  if (tiers.has_t2_ratio()) {
    constexpr char kField[] = "t2_ratio";
    FARKV_ASSIGN_OR_RETURN(request.t2_ratio,
                           ReadRatio(kField, tiers.t2_ratio()));
    FARKV_RETURN_IF_ERROR(
        CheckAtMost(kField, *request.t2_ratio, options.tiering.t2_ratio));
  }
  if (tiers.has_placement()) {
    const auto policy = ParsePlacementPolicy(tiers.placement());
    if (!policy.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tiers.", policy.status().message()));
    }
    request.placement = *policy;
  }
  return absl::OkStatus();
}

absl::Status ReadBudget(const TierOptions& tiers, DestructionBudget& budget) {
  const DestructionBudget limit = budget;
  if (tiers.has_per_event_ratio()) {
    constexpr char kField[] = "per_event_ratio";
    FARKV_RETURN_IF_ERROR(CheckKind(kField, BudgetKind::kBounds, limit));
    FARKV_ASSIGN_OR_RETURN(budget.bounds.per_event_ratio,
                           ReadRatio(kField, tiers.per_event_ratio()));
    FARKV_RETURN_IF_ERROR(CheckAtMost(kField, budget.bounds.per_event_ratio,
                                      limit.bounds.per_event_ratio));
  }
  if (tiers.has_cumulative_cap()) {
    constexpr char kField[] = "cumulative_cap";
    FARKV_RETURN_IF_ERROR(CheckKind(kField, BudgetKind::kBounds, limit));
    FARKV_ASSIGN_OR_RETURN(budget.bounds.cumulative_cap,
                           ReadRatio(kField, tiers.cumulative_cap()));
    FARKV_RETURN_IF_ERROR(CheckAtMost(kField, budget.bounds.cumulative_cap,
                                      limit.bounds.cumulative_cap));
  }
  if (tiers.has_budget_tokens()) {
    constexpr char kField[] = "budget_tokens";
    FARKV_RETURN_IF_ERROR(CheckKind(kField, BudgetKind::kFixed, limit));
    budget.tokens = tiers.budget_tokens();
    FARKV_RETURN_IF_ERROR(
        CheckAtLeast(kField, "", budget.tokens, limit.tokens));
  }
  if (tiers.has_budget_ratio()) {
    constexpr char kField[] = "budget_ratio";
    FARKV_RETURN_IF_ERROR(CheckKind(kField, BudgetKind::kProportional, limit));
    FARKV_ASSIGN_OR_RETURN(budget.ratio,
                           ReadRatio(kField, tiers.budget_ratio()));
    FARKV_RETURN_IF_ERROR(
        CheckAtLeast(kField, " per 10,000", budget.ratio, limit.ratio));
  }
  return absl::OkStatus();
}

absl::Status ReadEviction(const TierOptions& tiers,
                          const EngineOptions& options,
                          GenerationRequest& request) {
  if (!tiers.has_eviction() && !HasBudget(tiers)) return absl::OkStatus();
  FARKV_ASSIGN_OR_RETURN(
      const auto policy,
      ParseDestructionPolicy(tiers.has_eviction() ? tiers.eviction() : "none"));
  if (tiers.has_eviction() && !policy.has_value()) {
    if (HasBudget(tiers)) {
      return absl::InvalidArgumentError(
          "tiers.eviction is none, and a budget for it is set");
    }
    request.destroy_nothing = true;
    return absl::OkStatus();
  }
  if (!options.destruction.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tiers.eviction is ",
        tiers.has_eviction() ? tiers.eviction() : "not set, but a budget is",
        "; this worker's --eviction is none: no request may destroy rows"));
  }
  DestructionSettings settings = *options.destruction;
  if (policy.has_value()) {
    settings.policy = *policy;
    if (auto* tiers_policy = std::get_if<TiersPolicy>(&settings.policy)) {
      *tiers_policy = {settings.interval, settings.sinks, settings.recent};
    }
  }
  FARKV_RETURN_IF_ERROR(ReadBudget(tiers, settings.budget));
  FARKV_RETURN_IF_ERROR(settings.Validate());
  request.destruction = settings;
  return absl::OkStatus();
}

absl::Status CheckSelectionKind(const char* field, bool fits) {
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tiers.", field, " is set; the selection of this worker's ",
                   "flags has the other kind of budget"));
}

// Takes the budget that belongs to it out of `tiers`: what is left is that of
// eviction.
absl::Status ReadSelection(TierOptions& tiers, const EngineOptions& options,
                           GenerationRequest& request) {
  SelectionSettings settings = options.selection;
  if (tiers.has_selection()) {
    const auto policy = ParseSelectionPolicy(tiers.selection());
    if (!policy.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tiers.", policy.status().message()));
    }
    if (*policy == SelectionPolicy::kNone) {
      request.selection = SelectionSettings();
      return absl::OkStatus();
    }
    if (settings.policy == SelectionPolicy::kNone) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tiers.selection is ", tiers.selection(), "; this worker's ",
          "--selection is none: every request reads all rows"));
    }
    settings.policy = *policy;
  }
  if (settings.policy == SelectionPolicy::kNone) return absl::OkStatus();
  const bool by_ratio = settings.budget_ratio != 0;
  if (tiers.has_budget_tokens()) {
    constexpr char kField[] = "budget_tokens";
    FARKV_RETURN_IF_ERROR(CheckSelectionKind(kField, !by_ratio));
    FARKV_RETURN_IF_ERROR(CheckAtLeast(kField, "", tiers.budget_tokens(),
                                       settings.budget_tokens));
    settings.budget_tokens = tiers.budget_tokens();
  }
  if (tiers.has_budget_ratio()) {
    constexpr char kField[] = "budget_ratio";
    FARKV_RETURN_IF_ERROR(CheckSelectionKind(kField, by_ratio));
    FARKV_ASSIGN_OR_RETURN(const int32_t ratio,
                           ReadRatio(kField, tiers.budget_ratio()));
    FARKV_RETURN_IF_ERROR(
        CheckAtLeast(kField, " per 10,000", ratio, settings.budget_ratio));
    settings.budget_ratio = ratio;
  }
  FARKV_RETURN_IF_ERROR(settings.Validate());
  request.selection = settings;
  tiers.clear_budget_tokens();
  tiers.clear_budget_ratio();
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTierOptions(const TierOptions& tiers,
                             const EngineOptions& options,
                             GenerationRequest& request) {
  FARKV_RETURN_IF_ERROR(CheckServed(tiers));
  FARKV_RETURN_IF_ERROR(ReadPlacement(tiers, options, request));
  TierOptions left = tiers;
  FARKV_RETURN_IF_ERROR(ReadSelection(left, options, request));
  return ReadEviction(left, options, request);
}

}  // namespace farkv

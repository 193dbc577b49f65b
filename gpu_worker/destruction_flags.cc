#include "gpu_worker/destruction_flags.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace farkv {

void DestructionFlags::Register(Flags& flags) {
  flags.AddText("eviction", &eviction_,
                absl::StrCat("Policy that destroys rows, for good: ",
                             absl::StrJoin(DestructionPolicyNames(), ", ")));
  flags.AddRatio("per-event-ratio", &per_event_ratio_,
                 "Share of the unprotected tokens destroyed at each event; it "
                 "compounds, so give --cumulative-cap as well");
  flags.AddRatio("cumulative-cap", &cumulative_cap_,
                 "Share of all generated tokens that may ever be destroyed");
  flags.AddInteger("budget-tokens", &budget_tokens_, 0, 1 << 30,
                   "In place of the two: rows of each KV head that stay; with "
                   "--selection those that a decode step reads");
  flags.AddRatio("budget-ratio", &budget_ratio_,
                 "In place of them: the rows that stay as a share of the "
                 "tokens behind the protected prompt; with --selection those "
                 "that a decode step reads, as a share of all");
  flags.AddSwitch("protect-prompt", &protect_prompt_,
                  "Never destroy the prompt");
  flags.AddText("selection", &selection_,
                "Policy by which decode steps read some rows only, and destroy "
                "none: none or quest; its budget is --budget-tokens or "
                "--budget-ratio, an --eviction beside it has the other two");
}

absl::StatusOr<SelectionSettings> DestructionFlags::Selection() const {
  SelectionSettings settings;
  const auto policy = ParseSelectionPolicy(selection_);
  if (!policy.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", policy.status().message()));
  }
  settings.policy = *policy;
  if (settings.policy == SelectionPolicy::kNone) return settings;
  const int kinds = (budget_tokens_ != 0) + (budget_ratio_ != 0);
  if (kinds != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--selection is ", selection_, " and ", kinds, " budgets are given; ",
        "it needs one: --budget-tokens or --budget-ratio"));
  }
  settings.budget_ratio = budget_ratio_;
  if (budget_tokens_ != 0) settings.budget_tokens = budget_tokens_;
  FARKV_RETURN_IF_ERROR(settings.Validate());
  return settings;
}

absl::Status DestructionFlags::CheckNothingIsAsked() const {
  const char* asked = per_event_ratio_ != 0  ? "--per-event-ratio is above 0"
                      : cumulative_cap_ != 0 ? "--cumulative-cap is above 0"
                      : budget_tokens() != 0 ? "--budget-tokens is above 0"
                      : budget_ratio() != 0  ? "--budget-ratio is above 0"
                      : !protect_prompt_     ? "--protect-prompt is false"
                                             : nullptr;
  if (asked == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(asked, ", but --eviction is none, which destroys nothing",
                   selects() ? "" : ", and --selection is none"));
}

absl::StatusOr<DestructionBudget> DestructionFlags::Budget() const {
  const bool bounds = per_event_ratio_ != 0 || cumulative_cap_ != 0;
  const int kinds = (bounds ? 1 : 0) + (budget_tokens() != 0 ? 1 : 0) +
                    (budget_ratio() != 0 ? 1 : 0);
  if (kinds != 1 && selects()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--eviction is ", eviction_, " beside --selection ", selection_,
        ", whose budget the other flags are; it needs --per-event-ratio with "
        "--cumulative-cap"));
  }
  if (kinds != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--eviction is ", eviction_, " and ", kinds,
                     " budgets are given; it needs one: --per-event-ratio with "
                     "--cumulative-cap, --budget-tokens, or --budget-ratio"));
  }
  if (bounds && (per_event_ratio_ == 0 || cumulative_cap_ == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        per_event_ratio_ == 0 ? "--cumulative-cap" : "--per-event-ratio",
        " is above 0 and ",
        per_event_ratio_ == 0 ? "--per-event-ratio" : "--cumulative-cap",
        " is 0, so --eviction ", eviction_,
        " would destroy nothing; give both"));
  }
  DestructionBudget budget;
  budget.bounds = {per_event_ratio_, cumulative_cap_};
  budget.tokens = budget_tokens();
  budget.ratio = budget_ratio();
  budget.kind = bounds                 ? BudgetKind::kBounds
                : budget_tokens() != 0 ? BudgetKind::kFixed
                                       : BudgetKind::kProportional;
  return budget;
}

absl::StatusOr<std::optional<DestructionSettings>> DestructionFlags::Finish(
    const PlacementSettings& placement) const {
  const auto policy = ParseDestructionPolicy(eviction_);
  if (!policy.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", policy.status().message()));
  }
  if (!policy->has_value()) {
    FARKV_RETURN_IF_ERROR(CheckNothingIsAsked());
    return std::nullopt;
  }
  DestructionSettings settings;
  settings.policy = **policy;
  FARKV_ASSIGN_OR_RETURN(settings.budget, Budget());
  settings.protect_prompt = protect_prompt_;
  settings.interval = placement.interval;
  settings.sinks = placement.sinks;
  settings.recent = placement.recent;
  if (auto* tiers = std::get_if<TiersPolicy>(&settings.policy)) {
    *tiers = {placement.interval, placement.sinks, placement.recent};
  }
  FARKV_RETURN_IF_ERROR(settings.Validate());
  return settings;
}

}  // namespace farkv

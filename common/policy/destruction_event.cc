#include "common/policy/destruction_event.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/limits.h"
#include "common/policy/placement_settings.h"

namespace farkv {
namespace {

bool IsDueByBounds(const DestructionSettings& settings,
                   const SequenceCounts& counts) {
  return counts.generated % settings.interval == 0 &&
         counts.generated > settings.sinks + settings.recent;
}

// What the caller pins for the policy; the rest it pins itself.
PinnedTokens PinnedBy(const DestructionSettings& settings,
                      const SequenceCounts& counts) {
  PinnedTokens pinned{
      .prompt_tokens = settings.protect_prompt ? counts.prompt_tokens : 0,
      .first_generated = counts.prompt_tokens,
      .sinks = 0,
      .recent = 0};
  if (settings.budget.kind == BudgetKind::kBounds) {
    pinned.sinks = settings.sinks;
    pinned.recent = settings.recent;
  } else if (const auto* tiers = std::get_if<TiersPolicy>(&settings.policy)) {
    pinned.sinks = tiers->sinks;
  }
  return pinned;
}

// Rows that a policy keeps by itself: the youngest, and the first positions.
struct OwnPins {
  int64_t recent = 0;
  int64_t sinks = 0;
};

OwnPins PinsOf(const TiersPolicy& p) { return {.recent = p.recent}; }
OwnPins PinsOf(const H2oPolicy& p) {
  return {.recent = std::max<int64_t>(0, p.recent)};
}
OwnPins PinsOf(const StreamingLlmPolicy& p) { return {.sinks = p.sinks}; }
OwnPins PinsOf(const SnapKvPolicy& p) { return {.recent = p.window.window}; }
OwnPins PinsOf(const RkvPolicy& p) { return {.recent = p.window.window}; }
OwnPins PinsOf(const CurDkvPolicy& p) { return {p.buffer, p.sinks}; }
OwnPins PinsOf(const VaseAttnVPolicy& p) { return {p.window.window, p.sinks}; }
OwnPins PinsOf(const VaseDkvPolicy& p) { return {p.buffer, p.sinks}; }
OwnPins PinsOf(const RandomPolicy& p) { return {.recent = p.recent}; }
OwnPins PinsOf(const RecencyPolicy&) { return {}; }

// Rows beside the protected prompt that stay under the hierarchy: its own, or
// more where the policy's window is longer or its sinks lie in the prompt.
int64_t AlwaysKeptByBounds(const DestructionSettings& settings) {
  const OwnPins own =
      std::visit([](const auto& p) { return PinsOf(p); }, settings.policy);
  return settings.sinks + std::max(settings.recent, own.recent) +
         (settings.protect_prompt ? 0 : own.sinks);
}

// Half of what stays beside the protected prompt is H2O's recent part; under
// the hierarchy its own window takes that place.
void Resolve(const DestructionSettings& settings, int64_t room,
             H2oPolicy& policy) {
  if (policy.recent != H2oPolicy::kHalf) return;
  policy.recent =
      settings.budget.kind == BudgetKind::kBounds ? 0 : policy.AlwaysKept(room);
}

// A quarter of it is for large values; sinks of the prompt take no place there.
void Resolve(int64_t protected_prompt, int64_t room, VaseAttnVPolicy& policy) {
  if (policy.value_tokens == VaseAttnVPolicy::kQuarter) {
    policy.value_tokens = room / 4;
  }
  policy.value_tokens += std::min(policy.sinks, protected_prompt);
}

// `room` is what stays beside the protected prompt.
DestructionPolicy Resolved(const DestructionSettings& settings,
                           int64_t protected_prompt, int64_t room) {
  DestructionPolicy policy = settings.policy;
  if (auto* h2o = std::get_if<H2oPolicy>(&policy)) {
    Resolve(settings, room, *h2o);
  } else if (auto* vase = std::get_if<VaseAttnVPolicy>(&policy)) {
    Resolve(protected_prompt, room, *vase);
  }
  return policy;
}

// The policy's own trigger comes right after the prompt, when nothing else is
// cached.
bool DestroysPromptsOnly(const DestructionSettings& settings) {
  const auto* snap_kv = std::get_if<SnapKvPolicy>(&settings.policy);
  return snap_kv != nullptr && settings.budget.kind != BudgetKind::kBounds &&
         snap_kv->window.scorer == WindowScorer::kCausalMean;
}

}  // namespace

absl::Status DestructionSettings::Validate() const {
  FARKV_RETURN_IF_ERROR(ValidatePolicy(policy));
  if (protect_prompt && DestroysPromptsOnly(*this)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "eviction is snap-kv-prompt with a ", BudgetKindName(budget.kind),
        " budget: it destroys rows of the prompt only, which is protected; "
        "give --protect-prompt=false"));
  }
  FARKV_RETURN_IF_ERROR(CheckRange("interval", interval, 1, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("sinks", sinks, 0, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("recent", recent, 0, kMaxPolicyTokens));
  return budget.Validate();
}

absl::Status DestructionSettings::ValidateRequest(int64_t prompt_tokens) const {
  if (budget.kind != BudgetKind::kFixed) return absl::OkStatus();
  return CheckAdmission(policy, protect_prompt ? prompt_tokens : 0,
                        budget.tokens);
}

std::optional<DestructionEvent> PlanDestruction(
    const DestructionSettings& settings, const SequenceCounts& counts) {
  const PinnedTokens pinned = PinnedBy(settings, counts);
  BudgetCounts of_budget{.cached = counts.cached,
                         .protected_prompt = pinned.prompt_tokens,
                         .generated = counts.prompt_tokens + counts.generated -
                                      pinned.prompt_tokens,
                         .always_kept = pinned.sinks + pinned.recent,
                         .unprotected = 0,
                         .destroyed = counts.destroyed};
  if (settings.budget.kind == BudgetKind::kBounds) {
    // The cap is a share of what was generated, whatever is protected.
    of_budget.generated = counts.generated;
    of_budget.always_kept = AlwaysKeptByBounds(settings);
    of_budget.unprotected =
        counts.cached - of_budget.protected_prompt - of_budget.always_kept;
  } else if (settings.budget.kind == BudgetKind::kProportional) {
    of_budget.always_kept = AlwaysKept(
        settings.policy, ShareOf(settings.budget.ratio, of_budget.generated));
  }
  const int64_t num_kept = NumKept(settings.budget, of_budget);
  if (num_kept >= counts.cached) return std::nullopt;
  const bool is_due =
      settings.budget.kind == BudgetKind::kBounds
          ? IsDueByBounds(settings, counts)
          : IsDue(settings.policy, {.prompt_tokens = counts.prompt_tokens,
                                    .generated = counts.generated,
                                    .cached = counts.cached,
                                    .budget = num_kept,
                                    .budget_grows = settings.budget.kind ==
                                                    BudgetKind::kProportional});
  if (!is_due) return std::nullopt;
  return DestructionEvent{
      Resolved(settings, pinned.prompt_tokens, num_kept - pinned.prompt_tokens),
      num_kept, pinned};
}

}  // namespace farkv

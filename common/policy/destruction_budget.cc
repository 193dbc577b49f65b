#include "common/policy/destruction_budget.h"

#include <algorithm>

#include "common/base/check_range.h"
#include "common/policy/placement_settings.h"

namespace farkv {

const char* BudgetKindName(BudgetKind kind) {
  switch (kind) {
    case BudgetKind::kBounds:
      return "bounds";
    case BudgetKind::kFixed:
      return "fixed";
    case BudgetKind::kProportional:
      return "proportional";
  }
  return "unknown";
}

absl::Status DestructionBudget::Validate() const {
  switch (kind) {
    case BudgetKind::kBounds:
      return bounds.Validate();
    case BudgetKind::kFixed:
      return CheckRange("budget_tokens", tokens, 1, int64_t{1} << 32);
    case BudgetKind::kProportional:
      return CheckRange("budget_ratio", ratio, 1, kRatioOne);
  }
  return absl::OkStatus();
}

int64_t NumKept(const DestructionBudget& budget, const BudgetCounts& counts) {
  switch (budget.kind) {
    case BudgetKind::kBounds:
      return counts.cached - NumEvicted(budget.bounds, counts.unprotected,
                                        counts.generated, counts.destroyed);
    case BudgetKind::kFixed:
      return std::min(counts.cached, budget.tokens);
    case BudgetKind::kProportional:
      break;
  }
  const int64_t share = ShareOf(budget.ratio, counts.generated);
  return std::min(counts.cached, counts.protected_prompt +
                                     std::max(counts.always_kept, share));
}

void LossRecord::Add(int64_t generated, int64_t destroyed) {
  at_end = static_cast<double>(destroyed) / static_cast<double>(generated);
  sum += at_end;
  ++steps;
}

}  // namespace farkv

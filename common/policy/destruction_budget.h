// How many rows of each head stay after an event: a fixed number, a share of
// what was generated, or what the hierarchy's two bounds allow. The kinds lose
// very different shares under one name (ALGORITHMS 1.3), so every report says
// the kind, and what was lost on average and at the end. Pure.
#ifndef FARKV_COMMON_POLICY_DESTRUCTION_BUDGET_H_
#define FARKV_COMMON_POLICY_DESTRUCTION_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/policy/eviction_budget.h"

namespace farkv {

enum class BudgetKind : uint8_t {
  kBounds,        // per-event ratio and cumulative cap
  kFixed,         // the literature's: nothing is lost until it is full
  kProportional,  // the Tiers paper's: of the length so far, at every step
};

// "bounds", "fixed", "proportional", as reports say it.
const char* BudgetKindName(BudgetKind kind);

struct DestructionBudget {
  BudgetKind kind = BudgetKind::kBounds;
  // kFixed: rows that stay, everything that always stays included.
  int64_t tokens = 0;
  // kProportional: share of the tokens that follow the protected prompt, per
  // 10,000.
  int32_t ratio = 0;
  EvictionBudget bounds;  // kBounds

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;
};

// One sequence and head before an event.
struct BudgetCounts {
  int64_t cached = 0;  // live rows
  int64_t protected_prompt = 0;
  // Tokens ever processed after the protected prompt.
  int64_t generated = 0;
  // Rows that stay beside the prompt: sinks and recent.
  int64_t always_kept = 0;
  // Rows that no rule protects.
  int64_t unprotected = 0;
  int64_t destroyed = 0;  // so far
};

// Rows that stay, at most `cached`. A proportional budget never falls below
// what always stays.
int64_t NumKept(const DestructionBudget& budget, const BudgetCounts& counts);

// The share of generated tokens that is lost, as a query meets it: averaged
// over the chain, and at its end.
struct LossRecord {
  double sum = 0;
  int64_t steps = 0;
  double at_end = 0;

  // After each step; `generated` is at least 1.
  void Add(int64_t generated, int64_t destroyed);
  double average() const {
    return steps == 0 ? 0 : sum / static_cast<double>(steps);
  }
};

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_DESTRUCTION_BUDGET_H_

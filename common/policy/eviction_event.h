// When a destroying policy acts, in counts of one sequence. Plain values.
#ifndef FARKV_COMMON_POLICY_EVICTION_EVENT_H_
#define FARKV_COMMON_POLICY_EVICTION_EVENT_H_

#include <cstdint>

namespace farkv {

// After a step. Phases count from the request's own first token.
struct EventCounts {
  int64_t prompt_tokens = 0;
  int64_t generated = 0;      // 0 right after the prompt
  int64_t cached = 0;         // live rows of each head
  int64_t budget = 0;         // rows that stay after an event
  bool budget_grows = false;  // with the sequence

  int64_t processed() const { return prompt_tokens + generated; }
};

// While decoding, once a whole buffer is cached beside the budget.
constexpr bool IsDueOverBudget(const EventCounts& counts, int64_t buffer) {
  return counts.generated > 0 && counts.cached >= counts.budget + buffer;
}

// VaSE's rule, for every policy that its repository runs: the rows beside the
// budget are a whole count of buffers. With its budgets, multiples of the
// buffer, that is the paper's "more than the budget, and the number is a
// multiple"; with others the paper's would hold again after one more row. A
// budget that grows would pass the multiples by, so there a buffer is enough.
constexpr bool IsDueByBuffer(const EventCounts& counts, int64_t buffer) {
  return IsDueOverBudget(counts, buffer) &&
         (counts.budget_grows || (counts.cached - counts.budget) % buffer == 0);
}

// R-KV's rule: every `interval` tokens, once the budget is full.
constexpr bool IsDueByInterval(const EventCounts& counts, int64_t interval) {
  return counts.generated > 0 && counts.cached >= counts.budget &&
         counts.processed() % interval == 0;
}

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_EVICTION_EVENT_H_

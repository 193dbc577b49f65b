// The worker's flags about destroying rows and about reading fewer (DESIGN 5.4,
// 11): for each a policy and one kind of budget, or nothing at all.
// --budget-tokens and --budget-ratio are those of --selection where it has a
// policy, else those of --eviction.
#ifndef FARKV_GPU_WORKER_DESTRUCTION_FLAGS_H_
#define FARKV_GPU_WORKER_DESTRUCTION_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/policy/destruction_event.h"
#include "common/policy/placement_settings.h"
#include "common/policy/selection.h"
#include "common/process/flags.h"

namespace farkv {

class DestructionFlags {
 public:
  // Names every flag in `flags`; this object must outlive it.
  void Register(Flags& flags);
  // nullopt: nothing is destroyed. Schedule and protected tokens are those of
  // `placement`. INVALID_ARGUMENT naming the flags that do not go together.
  absl::StatusOr<std::optional<DestructionSettings>> Finish(
      const PlacementSettings& placement) const;
  // What decode steps read. Errors as Finish.
  absl::StatusOr<SelectionSettings> Selection() const;

 private:
  bool selects() const { return selection_ != "none"; }
  int64_t budget_tokens() const { return selects() ? 0 : budget_tokens_; }
  int32_t budget_ratio() const { return selects() ? 0 : budget_ratio_; }
  absl::Status CheckNothingIsAsked() const;
  absl::StatusOr<DestructionBudget> Budget() const;

  std::string eviction_ = "none", selection_ = "none";
  int32_t per_event_ratio_ = 0, cumulative_cap_ = 0, budget_ratio_ = 0;
  int64_t budget_tokens_ = 0;
  bool protect_prompt_ = true;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_DESTRUCTION_FLAGS_H_

// The worker's flags about destroying rows (DESIGN 5.4, 11): a policy and one
// kind of budget, or nothing at all.
#ifndef FARKV_GPU_WORKER_DESTRUCTION_FLAGS_H_
#define FARKV_GPU_WORKER_DESTRUCTION_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/policy/destruction_event.h"
#include "common/policy/placement_settings.h"
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

 private:
  absl::Status CheckNothingIsAsked() const;
  absl::StatusOr<DestructionBudget> Budget() const;

  std::string eviction_ = "none";
  int32_t per_event_ratio_ = 0, cumulative_cap_ = 0, budget_ratio_ = 0;
  int64_t budget_tokens_ = 0;
  bool protect_prompt_ = true;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_DESTRUCTION_FLAGS_H_

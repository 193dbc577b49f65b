#include "gpu_worker/tiering/admission.h"

#include "common/plan/t0_share.h"

namespace farkv {

int64_t ShareInSets(const SequenceSpec& spec, bool has_nodes) {
  return T0ShareInSets(spec.placement, spec.prompt_tokens, spec.max_tokens,
                       has_nodes);
}

}  // namespace farkv

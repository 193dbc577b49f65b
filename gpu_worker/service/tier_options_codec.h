// What one request may say about its tiers, within what the operator's flags
// allow. Pure.
#ifndef FARKV_GPU_WORKER_SERVICE_TIER_OPTIONS_CODEC_H_
#define FARKV_GPU_WORKER_SERVICE_TIER_OPTIONS_CODEC_H_

#include "absl/status/status.h"
#include "farkv/worker/v1/generation.pb.h"
#include "gpu_worker/engine/engine_options.h"
#include "gpu_worker/engine/generation.h"

namespace farkv {

// Reads `tiers` into `request`. A request may keep more rows than the worker's
// flags say and never fewer: any policy where the worker has one, the same kind
// of budget, ratios at most and kept rows at least the worker's; "none" always.
// It has the worker's shares of T0 and T2 at most, and any placement.
// INVALID_ARGUMENT naming field, value and limit; UNIMPLEMENTED naming a field
// that this worker does not serve.
absl::Status ReadTierOptions(const farkv::worker::v1::TierOptions& tiers,
                             const EngineOptions& options,
                             GenerationRequest& request);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_SERVICE_TIER_OPTIONS_CODEC_H_

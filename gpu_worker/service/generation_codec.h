// GenerationService messages <-> engine types. Pure.
#ifndef FARKV_GPU_WORKER_SERVICE_GENERATION_CODEC_H_
#define FARKV_GPU_WORKER_SERVICE_GENERATION_CODEC_H_

#include "absl/status/statusor.h"
#include "farkv/worker/v1/generation.pb.h"
#include "gpu_worker/engine/engine_options.h"
#include "gpu_worker/engine/generation.h"
#include "gpu_worker/engine/generation_stream.h"
#include "gpu_worker/engine/model.h"

namespace farkv {

// INVALID_ARGUMENT naming field, value and range; UNIMPLEMENTED naming a field
// that this worker does not serve. The rest is checked by Validate().
absl::StatusOr<GenerationRequest> FromProto(
    const farkv::worker::v1::GenerateRequest& request, const Model& model,
    const EngineOptions& options);

farkv::worker::v1::Delta ToDelta(const GenerationEvent& event);
farkv::worker::v1::Finished ToFinished(const GenerationEnd& end);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_SERVICE_GENERATION_CODEC_H_

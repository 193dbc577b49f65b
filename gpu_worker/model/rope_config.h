// RoPE as config.json tells it: `rope_scaling` and `rope_theta` of older
// files, `rope_parameters` of newer ones. Internal to gpu_worker/model.
#ifndef FARKV_GPU_WORKER_MODEL_ROPE_CONFIG_H_
#define FARKV_GPU_WORKER_MODEL_ROPE_CONFIG_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "gpu_worker/model/model_config.h"

namespace farkv {

// Sets rope_theta and rope_scaling, and raises max_position, which holds
// max_position_embeddings, to what the scaling reaches. INVALID_ARGUMENT
// naming a field and its value; UNIMPLEMENTED for a kind or field that we do
// not have.
absl::Status ReadRope(const nlohmann::json& object, ModelConfig& config);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_ROPE_CONFIG_H_

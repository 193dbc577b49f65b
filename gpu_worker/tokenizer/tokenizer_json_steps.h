// The parts of tokenizer.json around its model. Private to this room.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_STEPS_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_STEPS_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// Each reads a section of `object`, which may be missing, into `spec`.
absl::Status ReadNormalizer(const nlohmann::json& object, TokenizerSpec& spec);
absl::Status ReadPreTokenizer(const nlohmann::json& object,
                              TokenizerSpec& spec);
absl::Status ReadDecoder(const nlohmann::json& object, TokenizerSpec& spec);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_STEPS_H_

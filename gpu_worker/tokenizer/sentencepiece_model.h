// Reads SentencePiece's own file, tokenizer.model: a protobuf message
// (sentencepiece_model.proto) of which a few fields matter. Read by hand: the
// library brings a protobuf of its own that cannot share a process with
// gRPC's. Pure.
#ifndef FARKV_GPU_WORKER_TOKENIZER_SENTENCEPIECE_MODEL_H_
#define FARKV_GPU_WORKER_TOKENIZER_SENTENCEPIECE_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// INVALID_ARGUMENT naming what is wrong and where; UNIMPLEMENTED for models
// other than BPE and unigram and for normalisers other than the identity.
absl::StatusOr<TokenizerSpec> ParseSentencePieceModel(absl::string_view bytes);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_SENTENCEPIECE_MODEL_H_

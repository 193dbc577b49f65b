// The tokenizer that a GGUF file carries (keys tokenizer.ggml.*). Pure.
#ifndef FARKV_GPU_WORKER_MODEL_GGUF_TOKENIZER_H_
#define FARKV_GPU_WORKER_MODEL_GGUF_TOKENIZER_H_

#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/gguf_file.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// Models "gpt2" (byte-level BPE with a named pre-tokenizer) and "llama"
// (SentencePiece BPE). NOT_FOUND for a missing key; INVALID_ARGUMENT naming
// the key and value; UNIMPLEMENTED for another model or pre-tokenizer.
absl::StatusOr<TokenizerSpec> ReadGgufTokenizer(const GgufFile& file);

// Whether texts begin with the begin token: what the file says, or else what
// llama.cpp does for such a tokenizer.
bool GgufAddsBos(const GgufFile& file);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_GGUF_TOKENIZER_H_

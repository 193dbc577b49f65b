// The ways of cutting text of the families of models that GGUF files name
// instead of spelling out. Pure.
#ifndef FARKV_GPU_WORKER_TOKENIZER_PRE_TOKENIZERS_H_
#define FARKV_GPU_WORKER_TOKENIZER_PRE_TOKENIZERS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// U+2581, which stands for a space in SentencePiece's pieces.
extern const char kMetaspace[];
// GPT-2's rule, which tokenizer.json names too ("ByteLevel").
extern const char kGpt2Regex[];

// For errors.
extern const char kKnownPreTokenizers[];

// Sets normaliser, pre-tokenizer and ignore_merges of `spec` for `name`, a
// value of GGUF's tokenizer.ggml.pre: gpt-2, llama-bpe, qwen2, ...
// UNIMPLEMENTED naming the ones that are known; so is "default", which is a
// rule of llama.cpp's own and not GPT-2's.
absl::Status SetPreTokenizer(absl::string_view name, TokenizerSpec& spec);

// The settings of GGUF's "llama" model: spaces to U+2581, one in front of the
// text (`add_space_prefix`, default true in GGUF), byte fallback.
void SetSentencePiece(bool add_space_prefix, TokenizerSpec& spec);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_PRE_TOKENIZERS_H_

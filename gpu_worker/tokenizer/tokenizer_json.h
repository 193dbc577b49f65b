// Reads Hugging Face's tokenizer.json, or SentencePiece's tokenizer.model, and
// what belongs to it from tokenizer_config.json and chat_template.jinja beside
// it.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// NOT_FOUND for a missing file; INVALID_ARGUMENT naming the file and what is
// wrong in it; UNIMPLEMENTED for a kind of model, normaliser, pre-tokenizer or
// decoder that is not supported. The files beside it may be missing.
absl::StatusOr<TokenizerSpec> ReadTokenizerFiles(const std::string& path);

// A tokenizer.json from its text. Pure.
absl::StatusOr<TokenizerSpec> ParseTokenizerJson(absl::string_view text);
// tokenizer_config.json: begin and end tokens and the chat template of `spec`,
// which ParseTokenizerJson has made. Pure.
absl::Status ParseTokenizerConfig(absl::string_view text, TokenizerSpec& spec);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_H_

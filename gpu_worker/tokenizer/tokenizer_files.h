// Reads a tokenizer from the files of a model's folder.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_FILES_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// A Hugging Face tokenizer.json or, with that ending, SentencePiece's
// tokenizer.model, with what tokenizer_config.json and chat_template.jinja
// beside it say, which may be missing. NOT_FOUND for a missing file; other
// errors name the file.
absl::StatusOr<TokenizerSpec> ReadTokenizerFiles(const std::string& path);

// tokenizer_config.json: begin and end tokens and the chat template of `spec`,
// whose pieces are there. Pure.
absl::Status ParseTokenizerConfig(absl::string_view text, TokenizerSpec& spec);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_FILES_H_

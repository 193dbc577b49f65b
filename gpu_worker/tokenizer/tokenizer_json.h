// Reads Hugging Face's tokenizer.json. Pure.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// INVALID_ARGUMENT naming what is wrong; UNIMPLEMENTED for a kind of model,
// normaliser, pre-tokenizer or decoder that is not supported.
absl::StatusOr<TokenizerSpec> ParseTokenizerJson(absl::string_view text);

// The id of a token by its text, among added tokens and pieces.
std::optional<int32_t> FindToken(const TokenizerSpec& spec,
                                 const std::string& text);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_JSON_H_

// GPT-2's spelling of bytes as printable characters, in which byte-level
// pieces are written. Pure.
#ifndef FARKV_GPU_WORKER_TOKENIZER_BYTE_LEVEL_H_
#define FARKV_GPU_WORKER_TOKENIZER_BYTE_LEVEL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace farkv {

// The bytes that `piece` spells; nothing when a character of it is none of the
// 256, or when it is not UTF-8.
std::optional<std::string> BytesOfPiece(absl::string_view piece);

// The spelling of `bytes`.
std::string PieceOfBytes(absl::string_view bytes);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_BYTE_LEVEL_H_

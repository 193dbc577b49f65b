// A vocabulary without merges: the longest piece that the text starts with is
// the next token. Immutable, thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_CHARACTER_MODEL_H_
#define FARKV_GPU_WORKER_TOKENIZER_CHARACTER_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/piece_table.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

class CharacterModel {
 public:
  static absl::StatusOr<CharacterModel> Create(const TokenizerSpec& spec);

  // INVALID_ARGUMENT naming the first character without a token and its
  // place; `offset` is where `part` starts in the text.
  absl::Status Append(absl::string_view part, size_t offset,
                      std::vector<int32_t>& tokens) const;

 private:
  PieceTree tree_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_CHARACTER_MODEL_H_

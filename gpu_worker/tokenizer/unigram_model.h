// SentencePiece's unigram model: of all ways to cut a part of a text into
// pieces, the one with the best sum of scores (Kudo, "Subword regularization",
// 2018). Immutable, thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_UNIGRAM_MODEL_H_
#define FARKV_GPU_WORKER_TOKENIZER_UNIGRAM_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/piece_table.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"
#include "gpu_worker/tokenizer/vocabulary.h"

namespace farkv {

class UnigramModel {
 public:
  // INVALID_ARGUMENT unless each piece has a finite score and there is an
  // unknown token.
  static absl::StatusOr<UnigramModel> Create(const TokenizerSpec& spec);

  // Appends the tokens of `part`. A character that no piece covers costs 10
  // more than the worst piece.
  void Append(const Vocabulary& vocabulary, absl::string_view part,
              std::vector<int32_t>& tokens) const;

 private:
  PieceTree tree_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  bool float_sums_ = false;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_UNIGRAM_MODEL_H_

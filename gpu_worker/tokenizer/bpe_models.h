// Byte-pair encoding of one part of a text: by merges in order of rank
// (GPT-2, Llama 3), or by the scores of pieces (SentencePiece). Immutable,
// thread-safe; `scratch` belongs to one caller at a time.
#ifndef FARKV_GPU_WORKER_TOKENIZER_BPE_MODELS_H_
#define FARKV_GPU_WORKER_TOKENIZER_BPE_MODELS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/merge_list.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"
#include "gpu_worker/tokenizer/vocabulary.h"

namespace farkv {

class MergesBpe {
 public:
  // INVALID_ARGUMENT naming the merge that has an empty side or whose sides or
  // result are no pieces of `vocabulary`.
  static absl::StatusOr<MergesBpe> Create(const TokenizerSpec& spec,
                                          bool byte_level,
                                          const Vocabulary& vocabulary);

  // Appends the tokens of `part`. A character without a piece becomes bytes or
  // the unknown token; where there is neither, it is dropped, as the reference
  // implementation does.
  void Append(const Vocabulary& vocabulary, absl::string_view part,
              MergeList& scratch, std::vector<int32_t>& tokens) const;

 private:
  static uint64_t Pair(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 |
           static_cast<uint32_t>(right);
  }

  void PushUnits(const Vocabulary& vocabulary, absl::string_view part,
                 MergeList& list) const;

  struct Merge {
    int32_t rank;
    int32_t id;
  };
  absl::flat_hash_map<uint64_t, Merge> merges_;
  bool byte_level_ = false;
  bool ignore_merges_ = false;
};

class ScoresBpe {
 public:
  // INVALID_ARGUMENT unless each piece has a finite score.
  static absl::StatusOr<ScoresBpe> Create(const TokenizerSpec& spec);

  // As MergesBpe::Append.
  void Append(const Vocabulary& vocabulary, absl::string_view part,
              MergeList& scratch, std::vector<int32_t>& tokens) const;

 private:
  std::vector<double> scores_;
};

// The scores of `spec`, one for each piece and finite, or INVALID_ARGUMENT.
absl::StatusOr<std::vector<double>> CheckedScores(const TokenizerSpec& spec);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_BPE_MODELS_H_

// Finds the tokens that are looked for in a text before it is cut: the
// special ones and those added to a finished vocabulary. Immutable,
// thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_ADDED_TOKENS_H_
#define FARKV_GPU_WORKER_TOKENIZER_ADDED_TOKENS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/normalizer.h"
#include "gpu_worker/tokenizer/piece_table.h"
#include "gpu_worker/tokenizer/regex.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// What only a chat template may write: special tokens, and those that read like
// the marks of a turn or of a thought, "<|...|>", "<｜...｜>" and "<think>".
// Files differ in which of these they call special (DeepSeek's <｜User｜> is
// not).
bool IsMarker(const AddedToken& token);

class AddedTokens {
 public:
  // A stretch of a text: an added token, or what is between two.
  struct Segment {
    TextSpan span;
    int32_t token = -1;  // -1: plain text
  };

  AddedTokens() = default;
  // Takes the tokens whose `normalized` is `normalized`; such ones are
  // themselves rewritten by `normalizer`. The same content twice: the first
  // counts.
  static absl::StatusOr<AddedTokens> Create(
      const std::vector<AddedToken>& tokens, bool normalized,
      const Normalizer& normalizer);

  // Leftmost first, the longest among those that start together. A marker
  // (IsMarker) whose characters touch one of `literal` (in order) is plain
  // text.
  // Segments overlap where a token lies in the white space that the one before
  // it takes: the reference gives both.
  std::vector<Segment> Split(absl::string_view text,
                             std::span<const TextSpan> literal) const;
  bool has_markers() const { return has_markers_; }

 private:
  bool Counts(const AddedToken& token, absl::string_view text, TextSpan match,
              std::span<const TextSpan> literal) const;

  PieceTree tree_;  // of indices into tokens_
  std::vector<AddedToken> tokens_;
  bool has_markers_ = false;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_ADDED_TOKENS_H_

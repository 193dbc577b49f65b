// The checked vocabulary of a TokenizerSpec: what each id means and how each
// piece is found. Immutable, thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_VOCABULARY_H_
#define FARKV_GPU_WORKER_TOKENIZER_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/tokenizer/piece_table.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

class Vocabulary {
 public:
  // Every id below `size` = pieces and added tokens. INVALID_ARGUMENT naming
  // the id, the piece and what is wrong with it.
  static absl::StatusOr<Vocabulary> Create(const TokenizerSpec& spec,
                                           bool byte_level);

  // Pieces that the model may make, by the bytes of the text that they cover
  // (U+2581 and all; byte-level pieces as plain bytes).
  const PieceTable& pieces() const { return pieces_; }
  // The text of a token: part of a character where pieces are bytes; empty for
  // special ones and ids that are none.
  const std::string& text(int32_t id) const;
  bool special(int32_t id) const;
  // The text also of special ones.
  const std::string& spelling(int32_t id) const;
  int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  // Bytes of the longest text of a token, at least 1.
  size_t longest() const { return longest_; }

  // What stands for `unit`, one character (byte-level: byte) that is no piece:
  // its bytes, the unknown token, or nothing. `previous_unknown`: the unit
  // before it was unknown too, and is updated.
  void AppendUnknown(absl::string_view unit, bool& previous_unknown,
                     std::vector<int32_t>& tokens) const;
  std::optional<int32_t> unknown_token() const { return unknown_; }

 private:
  absl::Status AddPiece(const TokenizerSpec& spec, size_t id, bool byte_level);
  absl::Status AddAddedTokens(const TokenizerSpec& spec);

  PieceTable pieces_;
  std::vector<std::string> texts_;
  std::vector<bool> special_;
  std::array<int32_t, 256> byte_tokens_{};  // -1: none
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  std::optional<int32_t> unknown_;
  size_t longest_ = 1;
};

// The byte that "<0xE4>" stands for.
std::optional<uint8_t> ByteOfPiece(absl::string_view piece);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_VOCABULARY_H_

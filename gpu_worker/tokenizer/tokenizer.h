// Text <-> token ids from a Hugging Face tokenizer.json whose model has no
// merges: one token per character, plus special tokens written literally.
// Thread-safe after Load.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

class Tokenizer {
 public:
  // NOT_FOUND for a missing file; INVALID_ARGUMENT naming what is wrong;
  // UNIMPLEMENTED when the model has merges or is of another type.
  static absl::StatusOr<Tokenizer> Load(const std::string& path);

  // Longest piece first, so that "<eos>" is one token. INVALID_ARGUMENT naming
  // the first character without a token and its offset.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;
  // The text of one token; special tokens have none. Ids outside the
  // vocabulary (padding of the embedding table) have none either.
  std::string Decode(int32_t token) const;
  // Bytes of the longest piece.
  size_t longest_piece() const { return longest_piece_; }
  int32_t vocab_size() const { return static_cast<int32_t>(pieces_.size()); }

 private:
  std::map<std::string, int32_t> ids_;
  std::vector<std::string> pieces_;  // by id; empty where there is none
  std::vector<bool> special_;
  size_t longest_piece_ = 1;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_H_

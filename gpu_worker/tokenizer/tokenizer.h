// Text <-> token ids, with the ids of the model's reference tokenizer (Hugging
// Face tokenizers): byte-level BPE, SentencePiece BPE and unigram models, and
// models of single characters. Immutable and thread-safe; cheap to copy.
//
// Not here: truncation, padding, training, and normalisers that are no Unicode
// form or literal replacement; a file that asks for one is refused.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// What a special token, or another mark of a chat template (IsMarker of
// added_tokens.h), is where it is written in a text.
enum class SpecialText {
  kParsed,   // the token
  kLiteral,  // the characters that it is written with
};

struct TextPart {
  std::string text;
  SpecialText special = SpecialText::kParsed;
};

class Tokenizer {
 public:
  // Encodes nothing and decodes nothing.
  Tokenizer();

  // INVALID_ARGUMENT or UNIMPLEMENTED naming what cannot be.
  static absl::StatusOr<Tokenizer> Create(TokenizerSpec spec);
  // From a tokenizer.json or, with that ending, a SentencePiece tokenizer.model
  // (tokenizer_files.h). NOT_FOUND for a missing file.
  static absl::StatusOr<Tokenizer> Load(const std::string& path);

  // No begin or end token is added. INVALID_ARGUMENT for text that is not
  // UTF-8 and, in a model of single characters, for one without a token,
  // naming the place; RESOURCE_EXHAUSTED when a pattern of the file cannot cut
  // the text in reasonable time.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, SpecialText special = SpecialText::kParsed) const;
  // The parts are one text; special tokens and marks count only within the
  // parsed ones.
  absl::StatusOr<std::vector<int32_t>> Encode(
      std::span<const TextPart> parts) const;

  // The text of one token, which may be a piece of a character; special
  // tokens and ids outside the vocabulary (padding of the embedding table)
  // have none.
  std::string Decode(int32_t token) const;
  // The text of a whole sequence: U+FFFD for what is no character, without
  // the space that SentencePiece puts first.
  std::string DecodeText(std::span<const int32_t> tokens) const;
  bool special(int32_t token) const;
  // How a token is written in a text, special ones too; empty for none.
  std::string Spelling(int32_t token) const;

  // Bytes of the longest text of a token.
  size_t longest_piece() const;
  int32_t vocab_size() const;
  // What the file says; unset where it does not.
  std::optional<bool> add_bos() const;
  std::optional<int32_t> bos_token() const;
  std::optional<int32_t> eos_token() const;
  const std::optional<std::string>& chat_template() const;
  bool strip_first_space() const;

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_H_

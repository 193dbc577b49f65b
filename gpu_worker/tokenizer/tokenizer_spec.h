// What a tokenizer file says, read into plain values: the common form of
// tokenizer.json and of a GGUF file's metadata. Readers fill it as the file has
// it; Tokenizer::Create checks it, so nothing here need be consistent.
#ifndef FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_SPEC_H_
#define FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace farkv {

// Ids lie below this; a larger vocabulary is refused.
inline constexpr int64_t kMaxVocabSize = int64_t{1} << 22;
// How many ids added tokens may leave unused behind the last piece; more would
// let a small file ask for much memory.
inline constexpr size_t kMaxUnusedIds = size_t{1} << 16;
inline constexpr size_t kMaxMerges = size_t{1} << 22;

enum class TokenizerModel {
  kCharacters,  // the longest piece first; no merges
  kMergesBpe,   // merges in order of rank (GGUF "gpt2")
  kScoresBpe,   // SentencePiece BPE: the best score merges first ("llama")
  kUnigram,     // SentencePiece unigram: the best sum of scores
};

enum class PieceKind {
  kNormal,
  kUnknown,
  kControl,      // has no text of its own: <s>, <|im_end|>
  kUserDefined,  // never split: an added token
  kUnused,
  kByte,  // "<0xE4>": one byte of a character that has no piece
};

struct TokenizerMerge {
  std::string left;
  std::string right;
};

// A text that is found before anything else is done to the prompt.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // no text on decoding
  bool single_word = false;  // only between characters that are no letters
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for behind the normaliser
};

struct NormalizerStep {
  enum class Kind { kNfc, kNfd, kNfkc, kNfkd, kReplace, kPrepend };
  Kind kind = Kind::kNfc;
  std::string pattern;  // kReplace: the literal text
  std::string content;  // kReplace, kPrepend
};

// One step of cutting the text into the parts that pieces never cross.
struct PreTokenizerStep {
  enum class Kind {
    kSplit,      // by `regex`
    kDigits,     // digits stand apart, each by itself if `individual`
    kByteLevel,  // bytes to the characters of GPT-2's alphabet
    kMetaspace,  // spaces to U+2581
  };
  enum class Behavior {
    kIsolated,
    kRemoved,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous,
  };
  // Where kMetaspace puts a U+2581 that was not there.
  enum class Prepend { kNever, kFirst, kAlways };

  Kind kind = Kind::kSplit;
  std::string regex;
  Behavior behavior = Behavior::kIsolated;  // of a match of `regex`
  bool invert = false;                      // of what is between the matches
  bool individual = false;
  bool add_prefix_space = false;  // kByteLevel
  bool use_gpt2_regex = false;    // kByteLevel: cut by GPT-2's rule first
  Prepend prepend = Prepend::kNever;
  bool split = false;  // kMetaspace: cut before each U+2581
};

struct TokenizerSpec {
  TokenizerModel model = TokenizerModel::kCharacters;

  // By id, spelled as in the file (byte-level pieces in GPT-2's alphabet);
  // empty where an id has none.
  std::vector<std::string> pieces;
  std::vector<PieceKind> kinds;  // empty, or one for each piece
  std::vector<double> scores;    // kScoresBpe, kUnigram: for each piece
  // kUnigram: scores are added in float, as SentencePiece does, which decides
  // between ways that would be equally good.
  bool float_sums = false;
  std::vector<TokenizerMerge> merges;  // kMergesBpe: by rank
  std::vector<AddedToken> added_tokens;

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;

  bool byte_fallback = false;  // an unknown character as its kByte pieces
  bool ignore_merges = false;  // a part that is a piece is not merged
  bool fuse_unknown = false;   // unknown characters in a row are one token
  std::optional<int32_t> unknown_token;
  bool metaspace = false;  // U+2581 in a piece is a space in its text
  // A decoded text drops one space at its front (SentencePiece).
  bool strip_first_space = false;

  // Unset: the file does not say, the model's config decides.
  std::optional<bool> add_bos;
  std::optional<int32_t> bos_token;
  std::optional<int32_t> eos_token;
  std::optional<std::string> chat_template;  // Jinja, as in the file
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_TOKENIZER_SPEC_H_

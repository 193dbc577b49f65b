#include "gpu_worker/model/gguf_tokenizer.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/gguf_fields.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"

namespace farkv {
namespace {

constexpr char kPrefix[] = "tokenizer.ggml.";
constexpr int32_t kMaxId = static_cast<int32_t>(kMaxVocabSize) - 1;

bool IsLlamaBpe(const std::string& pre) {
  return pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3";
}

// Numbers of tokenizer.ggml.token_type.
std::optional<PieceKind> KindOf(int64_t stored) {
  switch (stored) {
    case 1:
      return PieceKind::kNormal;
    case 2:
      return PieceKind::kUnknown;
    case 3:
      return PieceKind::kControl;
    case 4:
      return PieceKind::kUserDefined;
    case 5:
      return PieceKind::kUnused;
    case 6:
      return PieceKind::kByte;
    default:
      return std::nullopt;
  }
}

void ReadPieces(GgufFields& fields, TokenizerSpec& spec) {
  const auto pieces = fields.Texts("tokens");
  spec.pieces.assign(pieces.begin(), pieces.end());
  if (!fields.Has("token_type")) return;
  for (const int64_t stored : fields.Ints("token_type")) {
    const auto kind = KindOf(stored);
    if (!kind.has_value()) {
      fields.Fail("token_type", absl::StrCat("an array with ", stored),
                  "of numbers from 1 to 6");
      return;
    }
    spec.kinds.push_back(*kind);
  }
}

// A merge is two pieces with a space between them, and only the first piece
// can begin with one.
void ReadMerges(GgufFields& fields, TokenizerSpec& spec) {
  for (const std::string_view text : fields.Texts("merges")) {
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) {
      fields.Fail("merges",
                  absl::StrCat("an array with \"", std::string(text), "\""),
                  "of two pieces and a space each");
      return;
    }
    spec.merges.push_back({std::string(text.substr(0, space)),
                           std::string(text.substr(space + 1))});
  }
}

std::optional<int32_t> ReadId(GgufFields& fields, const char* key) {
  if (!fields.Has(key)) return std::nullopt;
  return fields.Int(key, 0, kMaxId);
}

void ReadSpecialTokens(const GgufFile& file, GgufFields& fields,
                       TokenizerSpec& spec) {
  // A byte without a piece is dropped by the references of byte-level models,
  // whatever token a file names.
  if (spec.model == TokenizerModel::kScoresBpe) {
    spec.unknown_token = ReadId(fields, "unknown_token_id");
  }
  spec.bos_token = ReadId(fields, "bos_token_id");
  spec.eos_token = ReadId(fields, "eos_token_id");
  spec.add_bos = GgufAddsBos(file);
  constexpr char kTemplate[] = "tokenizer.chat_template";
  if (!file.Has(kTemplate)) return;
  const auto chat_template = file.String(kTemplate);
  fields.Keep(chat_template.status());
  if (chat_template.ok()) spec.chat_template = std::string(*chat_template);
}

// Files from before the key do not say how their model's texts were cut, and a
// guess would give ids that the model was not trained on.
absl::Status ReadPreTokenizer(const GgufFile& file, GgufFields& fields,
                              TokenizerSpec& spec) {
  if (!fields.Has("pre")) {
    return absl::NotFoundError(absl::StrCat(
        "\"", file.path(), "\" has no key ", kPrefix,
        "pre, without which its texts cannot be cut as in training; convert "
        "the model again, or add the key (gguf-new-metadata --pre-tokenizer); "
        "known are ",
        kKnownPreTokenizers));
  }
  const absl::Status status = SetPreTokenizer(fields.TextOr("pre", ""), spec);
  if (status.ok()) return fields.status();
  return absl::Status(
      status.code(), absl::StrCat("\"", file.path(), "\": ", status.message()));
}

absl::Status ReadModel(const GgufFile& file, GgufFields& fields,
                       TokenizerSpec& spec) {
  const std::string model = fields.TextOr("model", "");
  FARKV_RETURN_IF_ERROR(fields.status());
  if (model == "gpt2") {
    spec.model = TokenizerModel::kMergesBpe;
    ReadMerges(fields, spec);
    FARKV_RETURN_IF_ERROR(fields.status());
    return ReadPreTokenizer(file, fields, spec);
  }
  if (model == "llama") {
    spec.model = TokenizerModel::kScoresBpe;
    spec.scores = fields.Reals("scores");
    SetSentencePiece(fields.BoolOr("add_space_prefix", true), spec);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("\"", file.path(), "\": key ", kPrefix, "model is \"", model,
                   "\", supported are gpt2 and llama"));
}

}  // namespace

bool GgufAddsBos(const GgufFile& file) {
  GgufFields fields(file, kPrefix);
  const bool by_default = fields.TextOr("model", "") == "llama" ||
                          IsLlamaBpe(fields.TextOr("pre", ""));
  return fields.BoolOr("add_bos_token", by_default);
}

absl::StatusOr<TokenizerSpec> ReadGgufTokenizer(const GgufFile& file) {
  TokenizerSpec spec;
  GgufFields fields(file, kPrefix);
  FARKV_RETURN_IF_ERROR(ReadModel(file, fields, spec));
  ReadPieces(fields, spec);
  ReadSpecialTokens(file, fields, spec);
  FARKV_RETURN_IF_ERROR(fields.status());
  return spec;
}

}  // namespace farkv

#include "gpu_worker/tokenizer/vocabulary.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "gpu_worker/tokenizer/byte_level.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"

namespace farkv {
namespace {

constexpr size_t kMaxPieceBytes = 4096;

absl::Status CheckSizes(const TokenizerSpec& spec) {
  const size_t pieces = spec.pieces.size();
  if (pieces > static_cast<size_t>(kMaxVocabSize)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has ", pieces, " pieces, at most ",
                     kMaxVocabSize, " are taken"));
  }
  if (!spec.kinds.empty() && spec.kinds.size() != pieces) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has ", pieces, " pieces and ",
                     spec.kinds.size(), " kinds of them"));
  }
  return absl::OkStatus();
}

bool IsModelPiece(TokenizerModel model, PieceKind kind) {
  if (model == TokenizerModel::kMergesBpe) return true;
  return kind == PieceKind::kNormal || kind == PieceKind::kUserDefined;
}

}  // namespace

std::optional<uint8_t> ByteOfPiece(absl::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>' ||
      !absl::ascii_isxdigit(static_cast<unsigned char>(piece[3])) ||
      !absl::ascii_isxdigit(static_cast<unsigned char>(piece[4]))) {
    return std::nullopt;
  }
  return static_cast<uint8_t>(absl::HexStringToBytes(piece.substr(3, 2))[0]);
}

absl::StatusOr<Vocabulary> Vocabulary::Create(const TokenizerSpec& spec,
                                              bool byte_level) {
  FARKV_RETURN_IF_ERROR(CheckSizes(spec));
  Vocabulary made;
  made.byte_tokens_.fill(-1);
  made.byte_fallback_ = spec.byte_fallback;
  made.fuse_unknown_ = spec.fuse_unknown;
  made.unknown_ = spec.unknown_token;
  made.texts_.resize(spec.pieces.size());
  made.special_.resize(spec.pieces.size());
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    FARKV_RETURN_IF_ERROR(made.AddPiece(spec, id, byte_level));
  }
  FARKV_RETURN_IF_ERROR(made.AddAddedTokens(spec));
  if (made.unknown_ && (*made.unknown_ < 0 || *made.unknown_ >= made.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the unknown token is ", *made.unknown_,
                     ", must lie in [0, ", made.size(), ")"));
  }
  if (made.unknown_) made.special_[static_cast<size_t>(*made.unknown_)] = true;
  for (const std::string& text : made.texts_) {
    made.longest_ = std::max(made.longest_, text.size());
  }
  return made;
}

absl::Status Vocabulary::AddPiece(const TokenizerSpec& spec, size_t id,
                                  bool byte_level) {
  const std::string& piece = spec.pieces[id];
  if (piece.empty()) return absl::OkStatus();
  if (piece.size() > kMaxPieceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece ", id, " has ", piece.size(), " bytes, at most ",
                     kMaxPieceBytes, " are taken"));
  }
  const PieceKind kind =
      spec.kinds.empty() ? PieceKind::kNormal : spec.kinds[id];
  special_[id] = kind == PieceKind::kControl || kind == PieceKind::kUnknown;
  const auto byte = ByteOfPiece(piece);
  if (byte && (kind == PieceKind::kByte || spec.byte_fallback)) {
    byte_tokens_[*byte] = static_cast<int32_t>(id);
    texts_[id] = static_cast<char>(*byte);
    return absl::OkStatus();
  }
  std::string bytes = piece;
  bool findable = IsModelPiece(spec.model, kind);
  if (byte_level) {
    if (auto spelled = BytesOfPiece(piece)) {
      bytes = *std::move(spelled);
    } else {
      findable = false;  // an added token: it is spelled as it reads
    }
  }
  if (findable && !pieces_.Add(bytes, static_cast<int32_t>(id))) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece ", id, " is \"", absl::CHexEscape(piece),
                     "\", and so is piece ", pieces_.Find(bytes)));
  }
  texts_[id] =
      spec.metaspace ? absl::StrReplaceAll(bytes, {{kMetaspace, " "}}) : bytes;
  return absl::OkStatus();
}

absl::Status Vocabulary::AddAddedTokens(const TokenizerSpec& spec) {
  const size_t limit =
      spec.pieces.size() + spec.added_tokens.size() + kMaxUnusedIds;
  for (const AddedToken& token : spec.added_tokens) {
    if (token.id < 0 || static_cast<size_t>(token.id) >= limit) {
      return absl::InvalidArgumentError(absl::StrCat(
          "added token \"", absl::CHexEscape(token.content), "\" has id ",
          token.id, ", must lie in [0, ", limit, ")"));
    }
    if (token.content.empty() || token.content.size() > kMaxPieceBytes ||
        FindInvalidUtf8(token.content) != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("added token ", token.id, " has ", token.content.size(),
                       " bytes, must be UTF-8 of 1 to ", kMaxPieceBytes));
    }
    const auto id = static_cast<size_t>(token.id);
    if (id >= texts_.size()) {
      texts_.resize(id + 1);
      special_.resize(id + 1);
    }
    texts_[id] = token.content;
    special_[id] = token.special;
  }
  return absl::OkStatus();
}

const std::string& Vocabulary::spelling(int32_t id) const {
  static const std::string none;
  return id < 0 || id >= size() ? none : texts_[static_cast<size_t>(id)];
}

const std::string& Vocabulary::text(int32_t id) const {
  return spelling(special(id) ? -1 : id);
}

bool Vocabulary::special(int32_t id) const {
  return id >= 0 && id < size() && special_[static_cast<size_t>(id)];
}

void Vocabulary::AppendUnknown(absl::string_view unit, bool& previous_unknown,
                               std::vector<int32_t>& tokens) const {
  const auto token_of = [this](char byte) {
    return byte_tokens_[static_cast<uint8_t>(byte)];
  };
  if (byte_fallback_ && std::all_of(unit.begin(), unit.end(), [&](char byte) {
        return token_of(byte) >= 0;
      })) {
    for (const char byte : unit) tokens.push_back(token_of(byte));
    previous_unknown = false;
    return;
  }
  if (!unknown_) return;
  if (!previous_unknown || !fuse_unknown_) tokens.push_back(*unknown_);
  previous_unknown = true;
}

}  // namespace farkv

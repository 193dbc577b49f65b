#include "gpu_worker/tokenizer/character_model.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {

absl::StatusOr<CharacterModel> CharacterModel::Create(
    const TokenizerSpec& spec) {
  CharacterModel made;
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    const PieceKind kind =
        id < spec.kinds.size() ? spec.kinds[id] : PieceKind::kNormal;
    // Special tokens are found as added tokens, where they may be.
    if (spec.pieces[id].empty() || kind == PieceKind::kControl ||
        kind == PieceKind::kUnknown || kind == PieceKind::kUnused) {
      continue;
    }
    // A piece given twice was refused by the vocabulary.
    made.tree_.Add(spec.pieces[id], static_cast<int32_t>(id));
  }
  return made;
}

absl::Status CharacterModel::Append(absl::string_view part, size_t offset,
                                    std::vector<int32_t>& tokens) const {
  for (size_t at = 0; at < part.size();) {
    size_t bytes = 0;
    int32_t id = -1;
    tree_.ForEachPrefix(part.substr(at), [&](size_t length, int32_t found) {
      bytes = length;
      id = found;
    });
    if (id < 0) {
      const size_t length = ReadUtf8(part.substr(at)).bytes;
      return absl::InvalidArgumentError(
          absl::StrCat("the tokenizer has no token for \"",
                       absl::CHexEscape(part.substr(at, length)), "\" at byte ",
                       offset + at, " of the text"));
    }
    tokens.push_back(id);
    at += bytes;
  }
  return absl::OkStatus();
}

}  // namespace farkv

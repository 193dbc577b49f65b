#include "gpu_worker/tokenizer/bpe_models.h"

#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/byte_level.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

using Symbol = MergeList::Symbol;

size_t UnitBytes(absl::string_view text, bool bytes) {
  return bytes ? 1 : ReadUtf8(text).bytes;
}

// The id of a side of a merge or of its result; -1 when it is no piece.
int32_t FindSpelled(const Vocabulary& vocabulary, const std::string& piece,
                    bool byte_level) {
  if (!byte_level) return vocabulary.pieces().Find(piece);
  const std::optional<std::string> bytes = BytesOfPiece(piece);
  return bytes ? vocabulary.pieces().Find(*bytes) : -1;
}

}  // namespace

absl::StatusOr<MergesBpe> MergesBpe::Create(const TokenizerSpec& spec,
                                            bool byte_level,
                                            const Vocabulary& vocabulary) {
  if (spec.merges.size() > kMaxMerges) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", spec.merges.size(), " merges, at most ",
                     kMaxMerges, " are taken"));
  }
  MergesBpe made;
  made.byte_level_ = byte_level;
  made.ignore_merges_ = spec.ignore_merges;
  made.merges_.reserve(spec.merges.size());
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const TokenizerMerge& merge = spec.merges[rank];
    const auto find = [&](const std::string& piece) {
      return FindSpelled(vocabulary, piece, byte_level);
    };
    const int32_t left = find(merge.left), right = find(merge.right);
    const int32_t id = find(merge.left + merge.right);
    if (merge.left.empty() || merge.right.empty() || left < 0 || right < 0 ||
        id < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "merge ", rank, ", of \"", absl::CHexEscape(merge.left), "\" and \"",
          absl::CHexEscape(merge.right),
          "\", must join two pieces of the vocabulary to a third"));
    }
    // Of two equal merges the last one counts, as in the reference.
    made.merges_.insert_or_assign(Pair(left, right),
                                  Merge{static_cast<int32_t>(rank), id});
  }
  return made;
}

void MergesBpe::Append(const Vocabulary& vocabulary, absl::string_view part,
                       MergeList& scratch, std::vector<int32_t>& tokens) const {
  if (ignore_merges_) {
    const int32_t whole = vocabulary.pieces().Find(part);
    if (whole >= 0 && !vocabulary.special(whole)) {
      tokens.push_back(whole);
      return;
    }
  }
  PushUnits(vocabulary, part, scratch);
  scratch.Run([this](const Symbol& left, const Symbol& right, Merged* merged) {
    const auto found = merges_.find(Pair(left.id, right.id));
    if (found == merges_.end()) return false;
    *merged = {static_cast<double>(found->second.rank), found->second.id};
    return true;
  });
  for (const Symbol& symbol : scratch.symbols()) {
    if (symbol.end > symbol.begin) tokens.push_back(symbol.id);
  }
}

// What stands for a character without a piece takes part in the merging.
void MergesBpe::PushUnits(const Vocabulary& vocabulary, absl::string_view part,
                          MergeList& list) const {
  list.Clear();
  bool previous_unknown = false;
  std::vector<int32_t> unknown;
  for (size_t at = 0; at < part.size();) {
    const size_t length = UnitBytes(part.substr(at), byte_level_);
    const absl::string_view unit = part.substr(at, length);
    const auto begin = static_cast<uint32_t>(at);
    at += length;
    const auto end = static_cast<uint32_t>(at);
    const int32_t id = vocabulary.pieces().Find(unit);
    if (id >= 0) {
      list.Push(id, begin, end);
      previous_unknown = false;
      continue;
    }
    unknown.clear();
    vocabulary.AppendUnknown(unit, previous_unknown, unknown);
    if (unknown.size() == length) {  // byte by byte
      for (uint32_t i = 0; i < length; ++i) {
        list.Push(unknown[i], begin + i, begin + i + 1);
      }
    } else if (!unknown.empty()) {
      list.Push(unknown[0], begin, end);
    }
  }
}

absl::StatusOr<std::vector<double>> CheckedScores(const TokenizerSpec& spec) {
  if (spec.scores.size() != spec.pieces.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has ", spec.pieces.size(), " pieces and ",
                     spec.scores.size(), " scores"));
  }
  for (size_t id = 0; id < spec.scores.size(); ++id) {
    if (!std::isfinite(spec.scores[id])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the score of piece ", id, " is ", spec.scores[id]));
    }
  }
  return spec.scores;
}

absl::StatusOr<ScoresBpe> ScoresBpe::Create(const TokenizerSpec& spec) {
  ScoresBpe made;
  FARKV_ASSIGN_OR_RETURN(made.scores_, CheckedScores(spec));
  return made;
}

void ScoresBpe::Append(const Vocabulary& vocabulary, absl::string_view part,
                       MergeList& scratch, std::vector<int32_t>& tokens) const {
  scratch.Clear();
  for (size_t at = 0; at < part.size();) {
    const size_t length = UnitBytes(part.substr(at), /*bytes=*/false);
    scratch.Push(vocabulary.pieces().Find(part.substr(at, length)),
                 static_cast<uint32_t>(at), static_cast<uint32_t>(at + length));
    at += length;
  }
  scratch.Run([&](const Symbol& left, const Symbol& right, Merged* merged) {
    const int32_t id = vocabulary.pieces().Find(
        part.substr(left.begin, right.end - left.begin));
    if (id < 0) return false;
    *merged = {-scores_[static_cast<size_t>(id)], id};
    return true;
  });
  bool previous_unknown = false;
  for (const Symbol& symbol : scratch.symbols()) {
    if (symbol.end == symbol.begin) continue;
    if (symbol.id >= 0) {
      tokens.push_back(symbol.id);
      previous_unknown = false;
    } else {
      vocabulary.AppendUnknown(
          part.substr(symbol.begin, symbol.end - symbol.begin),
          previous_unknown, tokens);
    }
  }
}

}  // namespace farkv

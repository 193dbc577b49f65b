#include "gpu_worker/tokenizer/unigram_model.h"

#include <algorithm>
#include <limits>

#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/bpe_models.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

constexpr double kUnknownPenalty = 10.0;

// The best way to reach a byte of the text.
struct Reached {
  double score = -std::numeric_limits<double>::infinity();
  uint32_t from = 0;
  int32_t id = -1;  // -1: unknown
  bool any = false;
};

double Rounded(double score, bool to_float) {
  return to_float ? static_cast<double>(static_cast<float>(score)) : score;
}

}  // namespace

absl::StatusOr<UnigramModel> UnigramModel::Create(const TokenizerSpec& spec) {
  if (!spec.unknown_token) {
    return absl::InvalidArgumentError(
        "a unigram model must name its unknown token");
  }
  UnigramModel made;
  made.float_sums_ = spec.float_sums;
  FARKV_ASSIGN_OR_RETURN(made.scores_, CheckedScores(spec));
  double worst = 0;
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    worst = std::min(worst, made.scores_[id]);
    const PieceKind kind =
        spec.kinds.empty() ? PieceKind::kNormal : spec.kinds[id];
    const bool findable =
        kind == PieceKind::kNormal || kind == PieceKind::kUserDefined;
    // A piece given twice was refused by the vocabulary.
    if (findable && !spec.pieces[id].empty()) {
      made.tree_.Add(spec.pieces[id], static_cast<int32_t>(id));
    }
  }
  made.unknown_score_ = Rounded(worst - kUnknownPenalty, spec.float_sums);
  return made;
}

void UnigramModel::Append(const Vocabulary& vocabulary, absl::string_view part,
                          std::vector<int32_t>& tokens) const {
  std::vector<Reached> reached(part.size() + 1);
  reached[0] = {0.0, 0, -1, true};
  const auto offer = [&](size_t from, size_t to, double score, int32_t id) {
    const double sum = Rounded(reached[from].score + score, float_sums_);
    if (reached[to].any && sum <= reached[to].score) return;
    reached[to] = {sum, static_cast<uint32_t>(from), id, true};
  };
  for (size_t at = 0; at < part.size();) {
    const size_t length = ReadUtf8(part.substr(at)).bytes;
    bool single = false;
    if (reached[at].any) {
      tree_.ForEachPrefix(part.substr(at), [&](size_t bytes, int32_t id) {
        offer(at, at + bytes, scores_[static_cast<size_t>(id)], id);
        single |= bytes == length;
      });
      if (!single) offer(at, at + length, unknown_score_, -1);
    }
    at += length;
  }
  std::vector<uint32_t> ends;
  for (auto at = static_cast<uint32_t>(part.size()); at > 0;
       at = reached[at].from) {
    ends.push_back(at);
  }
  bool previous_unknown = false;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Reached& step = reached[*end];
    if (step.id >= 0) {
      tokens.push_back(step.id);
      previous_unknown = false;
    } else {
      vocabulary.AppendUnknown(part.substr(step.from, *end - step.from),
                               previous_unknown, tokens);
    }
  }
}

}  // namespace farkv

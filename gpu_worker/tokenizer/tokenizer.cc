#include "gpu_worker/tokenizer/tokenizer.h"

#include <algorithm>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "gpu_worker/tokenizer/added_tokens.h"
#include "gpu_worker/tokenizer/bpe_models.h"
#include "gpu_worker/tokenizer/character_model.h"
#include "gpu_worker/tokenizer/normalizer.h"
#include "gpu_worker/tokenizer/pre_tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer_files.h"
#include "gpu_worker/tokenizer/unigram_model.h"
#include "gpu_worker/tokenizer/utf8.h"
#include "gpu_worker/tokenizer/vocabulary.h"

namespace farkv {
namespace {

// Offsets within a text fit 32 bits.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

using Model = std::variant<CharacterModel, MergesBpe, ScoresBpe, UnigramModel>;

absl::StatusOr<Model> MakeModel(const TokenizerSpec& spec, bool byte_level,
                                const Vocabulary& vocabulary) {
  switch (spec.model) {
    case TokenizerModel::kCharacters:
      return CharacterModel::Create(spec);
    case TokenizerModel::kMergesBpe:
      return MergesBpe::Create(spec, byte_level, vocabulary);
    case TokenizerModel::kScoresBpe:
      return ScoresBpe::Create(spec);
    case TokenizerModel::kUnigram:
      return UnigramModel::Create(spec);
  }
  return absl::InvalidArgumentError("the tokenizer's model is unknown");
}

// In a GGUF file the kinds of pieces say which of them are looked for.
void AddTokensOfKinds(TokenizerSpec& spec) {
  std::vector<bool> listed(spec.pieces.size());
  for (const AddedToken& token : spec.added_tokens) {
    if (token.id >= 0 && static_cast<size_t>(token.id) < listed.size()) {
      listed[static_cast<size_t>(token.id)] = true;
    }
  }
  for (size_t id = 0; id < spec.kinds.size() && id < listed.size(); ++id) {
    const PieceKind kind = spec.kinds[id];
    const bool special =
        kind == PieceKind::kControl || kind == PieceKind::kUnknown;
    if (listed[id] || spec.pieces[id].empty() ||
        (!special && kind != PieceKind::kUserDefined)) {
      continue;
    }
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = spec.pieces[id];
    token.special = special;
    spec.added_tokens.push_back(std::move(token));
  }
}

// A model that looks for whole pieces must not find a mark in a message.
void HideMarkers(TokenizerSpec& spec) {
  for (const AddedToken& token : spec.added_tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (id < spec.kinds.size() && !token.special && IsMarker(token)) {
      spec.kinds[id] = PieceKind::kUnused;
    }
  }
}

absl::Status CheckEnds(const TokenizerSpec& spec, int32_t size) {
  for (const auto& [name, token] :
       {std::pair("begin", spec.bos_token), std::pair("end", spec.eos_token)}) {
    if (!token || (*token >= 0 && *token < size)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the token of the ", name, " is ", *token,
                     ", must lie in [0, ", size, ")"));
  }
  return absl::OkStatus();
}

// The pieces of `spans` (in order, disjoint) in `part`, counted from its begin.
std::vector<TextSpan> Within(std::span<const TextSpan> spans, TextSpan part) {
  std::vector<TextSpan> within;
  auto span = std::partition_point(
      spans.begin(), spans.end(),
      [&part](const TextSpan& s) { return s.end <= part.begin; });
  for (; span != spans.end() && span->begin < part.end; ++span) {
    within.push_back({std::max(span->begin, part.begin) - part.begin,
                      std::min(span->end, part.end) - part.begin});
  }
  return within;
}

}  // namespace

struct Tokenizer::Parts {
  Vocabulary vocabulary;
  AddedTokens added, added_normalized;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Model model;
  std::optional<bool> add_bos;
  std::optional<int32_t> bos_token, eos_token;
  std::optional<std::string> chat_template;
  bool strip_first_space = false;

  absl::Status Append(absl::string_view text, size_t offset, MergeList& scratch,
                      std::vector<int32_t>& tokens) const;
  absl::Status AppendPart(absl::string_view part, size_t offset,
                          MergeList& scratch,
                          std::vector<int32_t>& tokens) const;
};

Tokenizer::Tokenizer() : parts_(std::make_shared<Parts>()) {}

absl::StatusOr<Tokenizer> Tokenizer::Create(TokenizerSpec spec) {
  AddTokensOfKinds(spec);
  HideMarkers(spec);
  auto parts = std::make_shared<Parts>();
  FARKV_ASSIGN_OR_RETURN(parts->normalizer,
                         Normalizer::Create(spec.normalizer));
  FARKV_ASSIGN_OR_RETURN(parts->pre_tokenizer,
                         PreTokenizer::Create(spec.pre_tokenizer));
  const bool byte_level = parts->pre_tokenizer.byte_level();
  FARKV_ASSIGN_OR_RETURN(parts->vocabulary,
                         Vocabulary::Create(spec, byte_level));
  FARKV_ASSIGN_OR_RETURN(
      parts->added,
      AddedTokens::Create(spec.added_tokens, false, parts->normalizer));
  FARKV_ASSIGN_OR_RETURN(
      parts->added_normalized,
      AddedTokens::Create(spec.added_tokens, true, parts->normalizer));
  FARKV_ASSIGN_OR_RETURN(parts->model,
                         MakeModel(spec, byte_level, parts->vocabulary));
  FARKV_RETURN_IF_ERROR(CheckEnds(spec, parts->vocabulary.size()));
  parts->add_bos = spec.add_bos;
  parts->bos_token = spec.bos_token;
  parts->eos_token = spec.eos_token;
  parts->chat_template = std::move(spec.chat_template);
  parts->strip_first_space = spec.strip_first_space;
  return Tokenizer(std::move(parts));
}

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& path) {
  FARKV_ASSIGN_OR_RETURN(TokenizerSpec spec, ReadTokenizerFiles(path));
  absl::StatusOr<Tokenizer> made = Create(std::move(spec));
  if (made.ok()) return made;
  return absl::Status(
      made.status().code(),
      absl::StrCat("\"", path, "\": ", made.status().message()));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(
    absl::string_view text, SpecialText special) const {
  const TextPart part{std::string(text), special};
  return Encode(std::span(&part, 1));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(
    std::span<const TextPart> parts) const {
  std::string text;
  std::vector<TextSpan> literal;
  for (const TextPart& part : parts) {
    const size_t begin = text.size();
    text += part.text;
    if (part.special == SpecialText::kLiteral && text.size() > begin) {
      literal.push_back({begin, text.size()});
    }
  }
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", text.size(), " bytes, at most ",
                     kMaxTextBytes, " are taken"));
  }
  const size_t invalid = FindInvalidUtf8(text);
  if (invalid != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the text is not UTF-8: byte ", invalid, " is 0x",
        absl::BytesToHexString(absl::string_view(text).substr(invalid, 1))));
  }
  std::vector<int32_t> tokens;
  MergeList scratch;
  for (const auto& segment : parts_->added.Split(text, literal)) {
    const TextSpan span = segment.span;
    if (segment.token >= 0) {
      tokens.push_back(segment.token);
      continue;
    }
    std::vector<TextSpan> within;
    if (parts_->added_normalized.has_markers()) within = Within(literal, span);
    FARKV_ASSIGN_OR_RETURN(
        const std::string normalized,
        parts_->normalizer.Apply(
            absl::string_view(text).substr(span.begin, span.end - span.begin),
            within));
    for (const auto& inner :
         parts_->added_normalized.Split(normalized, within)) {
      if (inner.token >= 0) {
        tokens.push_back(inner.token);
        continue;
      }
      FARKV_RETURN_IF_ERROR(parts_->Append(
          absl::string_view(normalized)
              .substr(inner.span.begin, inner.span.end - inner.span.begin),
          span.begin + inner.span.begin, scratch, tokens));
    }
  }
  return tokens;
}

absl::Status Tokenizer::Parts::Append(absl::string_view text, size_t offset,
                                      MergeList& scratch,
                                      std::vector<int32_t>& tokens) const {
  FARKV_ASSIGN_OR_RETURN(
      const CutText cut,
      pre_tokenizer.Cut(std::string(text), /*at_front=*/offset == 0));
  for (const TextSpan& span : cut.parts) {
    FARKV_RETURN_IF_ERROR(AppendPart(
        absl::string_view(cut.text).substr(span.begin, span.end - span.begin),
        offset + span.begin, scratch, tokens));
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::Parts::AppendPart(absl::string_view part, size_t offset,
                                          MergeList& scratch,
                                          std::vector<int32_t>& tokens) const {
  if (const auto* characters = std::get_if<CharacterModel>(&model)) {
    return characters->Append(part, offset, tokens);
  }
  if (const auto* merges = std::get_if<MergesBpe>(&model)) {
    merges->Append(vocabulary, part, scratch, tokens);
  } else if (const auto* scores = std::get_if<ScoresBpe>(&model)) {
    scores->Append(vocabulary, part, scratch, tokens);
  } else {
    std::get<UnigramModel>(model).Append(vocabulary, part, tokens);
  }
  return absl::OkStatus();
}

std::string Tokenizer::Decode(int32_t token) const {
  return parts_->vocabulary.text(token);
}

std::string Tokenizer::DecodeText(std::span<const int32_t> tokens) const {
  std::string bytes;
  for (const int32_t token : tokens) bytes += parts_->vocabulary.text(token);
  absl::string_view rest = bytes;
  if (parts_->strip_first_space) absl::ConsumePrefix(&rest, " ");
  std::string text;
  while (!rest.empty()) {
    const Utf8Prefix prefix = ReadUtf8(rest);
    const bool whole = prefix.kind == Utf8Prefix::Kind::kCharacter;
    absl::StrAppend(&text, whole ? rest.substr(0, prefix.bytes)
                                 : absl::string_view(kReplacementCharacter));
    rest.remove_prefix(prefix.bytes);
  }
  return text;
}

std::string Tokenizer::Spelling(int32_t token) const {
  return parts_->vocabulary.spelling(token);
}

bool Tokenizer::special(int32_t token) const {
  return parts_->vocabulary.special(token);
}

size_t Tokenizer::longest_piece() const { return parts_->vocabulary.longest(); }

int32_t Tokenizer::vocab_size() const { return parts_->vocabulary.size(); }

std::optional<bool> Tokenizer::add_bos() const { return parts_->add_bos; }

std::optional<int32_t> Tokenizer::bos_token() const {
  return parts_->bos_token;
}

std::optional<int32_t> Tokenizer::eos_token() const {
  return parts_->eos_token;
}

const std::optional<std::string>& Tokenizer::chat_template() const {
  return parts_->chat_template;
}

bool Tokenizer::strip_first_space() const { return parts_->strip_first_space; }

}  // namespace farkv

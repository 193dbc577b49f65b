#include "gpu_worker/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/bounded_json.h"
#include "gpu_worker/tokenizer/json_fields.h"
#include "gpu_worker/tokenizer/tokenizer_json_steps.h"

namespace farkv {
namespace {

using nlohmann::json;

absl::StatusOr<size_t> ReadId(const json& id, const std::string& of,
                              size_t limit) {
  if (id.is_number_unsigned() && id.get<uint64_t>() < limit) {
    return id.get<size_t>();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the id of \"", absl::CHexEscape(of), "\" is ",
      id.is_number() ? id.dump() : std::string("of type ") + id.type_name(),
      ", must be an integer in [0, ", limit, ")"));
}

// "vocab" as an object of ids by piece.
absl::Status ReadIds(const json& vocab, TokenizerSpec& spec) {
  const size_t limit = std::min(static_cast<size_t>(kMaxVocabSize),
                                4 * vocab.size() + kMaxUnusedIds);
  for (const auto& [piece, value] : vocab.items()) {
    FARKV_ASSIGN_OR_RETURN(const size_t id, ReadId(value, piece, limit));
    if (id >= spec.pieces.size()) spec.pieces.resize(id + 1);
    if (piece.empty() || !spec.pieces[id].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", id, " is \"", absl::CHexEscape(piece),
                       "\" and \"", absl::CHexEscape(spec.pieces[id]), "\""));
    }
    spec.pieces[id] = piece;
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizerMerge> ReadMerge(const json& merge, size_t rank) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
      merge[1].is_string()) {
    return TokenizerMerge{merge[0].get<std::string>(),
                          merge[1].get<std::string>()};
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos &&
        text.find(' ', space + 1) == std::string::npos) {
      return TokenizerMerge{text.substr(0, space), text.substr(space + 1)};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("merge ", rank, " is not two pieces"));
}

absl::Status ReadMerges(const json& model, TokenizerSpec& spec) {
  FARKV_ASSIGN_OR_RETURN(const json* merges, ArrayField(model, "merges"));
  if (merges == nullptr) return absl::OkStatus();
  for (const json& merge : *merges) {
    FARKV_ASSIGN_OR_RETURN(TokenizerMerge made,
                           ReadMerge(merge, spec.merges.size()));
    spec.merges.push_back(std::move(made));
  }
  return absl::OkStatus();
}

absl::Status ReadBpe(const json& model, const json& vocab,
                     TokenizerSpec& spec) {
  if (!vocab.is_object()) return WrongType("vocab", "an object", vocab);
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    FARKV_ASSIGN_OR_RETURN(const std::string value,
                           StringField(model, name, ""));
    if (!value.empty()) {
      return absl::UnimplementedError(
          absl::StrCat("the model has a ", name, "; that is not supported"));
    }
  }
  FARKV_RETURN_IF_ERROR(ReadIds(vocab, spec));
  FARKV_RETURN_IF_ERROR(ReadMerges(model, spec));
  FARKV_ASSIGN_OR_RETURN(spec.byte_fallback,
                         BoolField(model, "byte_fallback", false));
  FARKV_ASSIGN_OR_RETURN(spec.fuse_unknown,
                         BoolField(model, "fuse_unk", false));
  FARKV_ASSIGN_OR_RETURN(spec.ignore_merges,
                         BoolField(model, "ignore_merges", false));
  FARKV_ASSIGN_OR_RETURN(const std::string unknown,
                         StringField(model, "unk_token", ""));
  if (unknown.empty()) return absl::OkStatus();
  spec.unknown_token = FindToken(spec, unknown);
  if (!spec.unknown_token) {
    return absl::InvalidArgumentError(
        absl::StrCat("the unk_token \"", absl::CHexEscape(unknown),
                     "\" is not in the vocabulary"));
  }
  return absl::OkStatus();
}

absl::Status ReadUnigram(const json& model, const json& vocab,
                         TokenizerSpec& spec) {
  spec.model = TokenizerModel::kUnigram;
  if (!vocab.is_array()) return WrongType("vocab", "an array", vocab);
  for (const json& entry : vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number()) {
      return absl::InvalidArgumentError(
          absl::StrCat("piece ", spec.pieces.size(), " is no text and score"));
    }
    spec.pieces.push_back(entry[0].get<std::string>());
    spec.scores.push_back(entry[1].get<double>());
  }
  FARKV_ASSIGN_OR_RETURN(spec.byte_fallback,
                         BoolField(model, "byte_fallback", false));
  spec.fuse_unknown = true;
  const json* unknown = FindField(model, "unk_id");
  if (unknown != nullptr) {
    FARKV_ASSIGN_OR_RETURN(const size_t id,
                           ReadId(*unknown, "unk_id", spec.pieces.size()));
    spec.unknown_token = static_cast<int32_t>(id);
  }
  return absl::OkStatus();
}

absl::StatusOr<AddedToken> ReadAddedToken(const json& entry) {
  AddedToken token;
  FARKV_ASSIGN_OR_RETURN(token.content, StringField(entry, "content"));
  const json* id = FindField(entry, "id");
  if (id == nullptr) {
    return absl::InvalidArgumentError("an added token has no \"id\"");
  }
  FARKV_ASSIGN_OR_RETURN(
      const size_t checked,
      ReadId(*id, token.content, static_cast<size_t>(kMaxVocabSize)));
  token.id = static_cast<int32_t>(checked);
  FARKV_ASSIGN_OR_RETURN(token.special, BoolField(entry, "special", false));
  FARKV_ASSIGN_OR_RETURN(token.single_word,
                         BoolField(entry, "single_word", false));
  FARKV_ASSIGN_OR_RETURN(token.lstrip, BoolField(entry, "lstrip", false));
  FARKV_ASSIGN_OR_RETURN(token.rstrip, BoolField(entry, "rstrip", false));
  FARKV_ASSIGN_OR_RETURN(token.normalized,
                         BoolField(entry, "normalized", !token.special));
  return token;
}

absl::Status ReadAddedTokens(const json& object, TokenizerSpec& spec) {
  FARKV_ASSIGN_OR_RETURN(const json* tokens,
                         ArrayField(object, "added_tokens"));
  if (tokens == nullptr) return absl::OkStatus();
  for (const json& entry : *tokens) {
    FARKV_ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(entry));
    spec.added_tokens.push_back(std::move(token));
  }
  return absl::OkStatus();
}

// Special pieces are no text of the model's own.
void SetKinds(TokenizerSpec& spec) {
  spec.kinds.assign(spec.pieces.size(), PieceKind::kNormal);
  for (const AddedToken& token : spec.added_tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (id >= spec.kinds.size()) continue;
    spec.kinds[id] =
        token.special ? PieceKind::kControl : PieceKind::kUserDefined;
  }
}

void ReadPostProcessorStep(const json& step, TokenizerSpec& spec) {
  const json* single = FindField(step, "single");
  if (single == nullptr || !single->is_array() || single->empty()) return;
  const json* token = FindField((*single)[0], "SpecialToken");
  const json* name = token == nullptr ? nullptr : FindField(*token, "id");
  if (name == nullptr || !name->is_string()) return;
  const auto id = FindToken(spec, name->get<std::string>());
  if (!id) return;
  spec.bos_token = id;
  spec.add_bos = true;
}

// Whether the post-processor puts a token before the text, and which.
void ReadPostProcessor(const json& object, TokenizerSpec& spec) {
  const json* found = FindField(object, "post_processor");
  if (found == nullptr) return;
  const json* sequence = FindField(*found, "processors");
  if (sequence == nullptr || !sequence->is_array()) {
    ReadPostProcessorStep(*found, spec);
    return;
  }
  for (const json& step : *sequence) ReadPostProcessorStep(step, spec);
}

}  // namespace

absl::StatusOr<TokenizerSpec> ParseTokenizerJson(absl::string_view text) {
  FARKV_ASSIGN_OR_RETURN(const json object, ParseJsonObject(text));
  TokenizerSpec spec;
  const json* model = FindField(object, "model");
  const json* vocab = model == nullptr ? nullptr : FindField(*model, "vocab");
  if (vocab == nullptr) {
    return absl::InvalidArgumentError("it has no model with a \"vocab\"");
  }
  FARKV_RETURN_IF_ERROR(ReadAddedTokens(object, spec));
  FARKV_ASSIGN_OR_RETURN(const std::string type,
                         StringField(*model, "type", "BPE"));
  if (type == "BPE") {
    FARKV_RETURN_IF_ERROR(ReadBpe(*model, *vocab, spec));
  } else if (type == "Unigram") {
    FARKV_RETURN_IF_ERROR(ReadUnigram(*model, *vocab, spec));
  } else {
    return absl::UnimplementedError(
        absl::StrCat("the model's type is \"", absl::CHexEscape(type),
                     "\"; BPE and Unigram are supported"));
  }
  SetKinds(spec);
  FARKV_RETURN_IF_ERROR(ReadNormalizer(object, spec));
  FARKV_RETURN_IF_ERROR(ReadPreTokenizer(object, spec));
  FARKV_RETURN_IF_ERROR(ReadDecoder(object, spec));
  const bool characters = type == "BPE" && spec.merges.empty() &&
                          spec.pre_tokenizer.empty() && !spec.byte_fallback;
  if (type == "BPE" && !characters) spec.model = TokenizerModel::kMergesBpe;
  // Real tokenizers say when a token goes in front; ours of characters leaves
  // it to the model's config.
  if (!characters) spec.add_bos = false;
  ReadPostProcessor(object, spec);
  return spec;
}

std::optional<int32_t> FindToken(const TokenizerSpec& spec,
                                 const std::string& text) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.content == text) return token.id;
  }
  const auto found = std::find(spec.pieces.begin(), spec.pieces.end(), text);
  if (found == spec.pieces.end() || text.empty()) return std::nullopt;
  return static_cast<int32_t>(found - spec.pieces.begin());
}

}  // namespace farkv

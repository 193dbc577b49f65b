#include "gpu_worker/tokenizer/tokenizer.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxVocab = 1 << 22;

absl::Status CheckModel(const json& object) {
  const json model = object.value("model", json(nullptr));
  if (!model.is_object() || !model.contains("vocab") ||
      !model["vocab"].is_object()) {
    return absl::InvalidArgumentError("has no model with a vocab object");
  }
  const json type = model.value("type", json("BPE"));
  if (type != json("BPE")) {
    return absl::UnimplementedError(
        absl::StrCat("model type is ", type.dump(), ", only BPE is supported"));
  }
  const json merges = model.value("merges", json::array());
  if (!merges.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("the model has ", merges.size(),
                     " merges; only one token per character is supported"));
  }
  return absl::OkStatus();
}

// One entry of the vocabulary: text, id, special.
struct Piece {
  std::string text;
  int64_t id = 0;
  bool special = false;
};

absl::StatusOr<std::vector<Piece>> ReadPieces(const json& object) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError("is not a JSON object");
  }
  FARKV_RETURN_IF_ERROR(CheckModel(object));
  std::vector<Piece> pieces;
  for (const auto& [text, id] : object["model"]["vocab"].items()) {
    if (!id.is_number_integer()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the id of \"", text, "\" is ", id.dump()));
    }
    pieces.push_back({text, id.get<int64_t>(), false});
  }
  for (const json& added : object.value("added_tokens", json::array())) {
    if (!added.is_object() || !added.contains("content") ||
        !added.contains("id") || !added["id"].is_number_integer() ||
        !added["content"].is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat("added token ", added.dump(), " needs id and content"));
    }
    pieces.push_back({added["content"].get<std::string>(),
                      added["id"].get<int64_t>(),
                      added.value("special", json(false)) == json(true)});
  }
  for (const Piece& piece : pieces) {
    if (piece.id < 0 || piece.id >= kMaxVocab || piece.text.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token \"", piece.text, "\" has id ", piece.id,
          ", must be non-empty with an id in [0, ", kMaxVocab, ")"));
    }
  }
  return pieces;
}

}  // namespace

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot open \"", path, "\""));
  }
  const json object = json::parse(file, nullptr, false);
  const absl::StatusOr<std::vector<Piece>> pieces = ReadPieces(object);
  if (!pieces.ok()) {
    return absl::Status(
        pieces.status().code(),
        absl::StrCat("\"", path, "\" ", pieces.status().message()));
  }
  Tokenizer tokenizer;
  for (const Piece& piece : *pieces) {
    const auto index = static_cast<size_t>(piece.id);
    if (index >= tokenizer.pieces_.size()) {
      tokenizer.pieces_.resize(index + 1);
      tokenizer.special_.resize(index + 1);
    }
    tokenizer.pieces_[index] = piece.text;
    tokenizer.special_[index] = piece.special;
    tokenizer.ids_[piece.text] = static_cast<int32_t>(piece.id);
    tokenizer.longest_piece_ =
        std::max(tokenizer.longest_piece_, piece.text.size());
  }
  return tokenizer;
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(
    absl::string_view text) const {
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t length = std::min(longest_piece_, text.size() - at);
    auto found = ids_.end();
    for (; length > 0; --length) {
      found = ids_.find(std::string(text.substr(at, length)));
      if (found != ids_.end()) break;
    }
    if (found == ids_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the tokenizer has no token for \"",
                       absl::CHexEscape(text.substr(at, 1)), "\" at byte ", at,
                       " of the text"));
    }
    tokens.push_back(found->second);
    at += length;
  }
  return tokens;
}

std::string Tokenizer::Decode(int32_t token) const {
  const auto index = static_cast<size_t>(token);
  if (token < 0 || index >= pieces_.size() || special_[index]) return "";
  return pieces_[index];
}

}  // namespace farkv

// Added tokens of every kind, in plain texts and in chats, against the
// reference tokenizers (tests/golden/tokenizers/generate_added.py).
#include "gpu_worker/tokenizer/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "gpu_worker/tokenizer/byte_level.h"
#include "gpu_worker/tokenizer/normalizer.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "gpu_worker/tokenizer/tokenizer_json.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = NormalizerStep::Kind;
using Spans = std::vector<TextSpan>;

NormalizerStep Step(Kind kind, std::string pattern = "",
                    std::string content = "") {
  return {kind, std::move(pattern), std::move(content)};
}

// The family's tokenizer with the tokens of added_tokens.json.
absl::StatusOr<Tokenizer> WithAddedTokens(const std::string& family) {
  std::ifstream file(ReferencePath(family + "/tokenizer.json"));
  auto spec = ParseTokenizerJson(nlohmann::json::parse(file).dump());
  if (!spec.ok()) return spec.status();
  int32_t next = static_cast<int32_t>(spec->pieces.size());
  for (const AddedToken& token : spec->added_tokens) {
    next = std::max(next, token.id + 1);
  }
  std::ifstream added(ReferencePath("added_tokens.json"));
  for (const auto& entry : nlohmann::json::parse(added)) {
    AddedToken token;
    token.content = entry["content"];
    token.special = entry["special"];
    token.normalized = entry["normalized"];
    token.lstrip = entry["lstrip"];
    token.rstrip = entry["rstrip"];
    token.single_word = entry["single_word"];
    const auto piece =
        std::find(spec->pieces.begin(), spec->pieces.end(), token.content);
    token.id = piece == spec->pieces.end()
                   ? next++
                   : static_cast<int32_t>(piece - spec->pieces.begin());
    spec->added_tokens.push_back(std::move(token));
  }
  return Tokenizer::Create(*std::move(spec));
}

// Every second part is literal.
std::vector<std::vector<TextPart>> ReferenceParts() {
  std::ifstream file(ReferencePath("added_texts.jsonl"));
  std::vector<std::vector<TextPart>> texts;
  for (std::string line; std::getline(file, line);) {
    texts.emplace_back();
    for (const auto& part : nlohmann::json::parse(line)) {
      texts.back().push_back({part, texts.back().size() % 2 == 0
                                        ? SpecialText::kParsed
                                        : SpecialText::kLiteral});
    }
  }
  return texts;
}

class AddedTokensTest : public ::testing::TestWithParam<const char*> {};

TEST_P(AddedTokensTest, OfEveryKindHaveTheReferencesIds) {
  const std::string family = GetParam();
  const auto tokenizer = WithAddedTokens(family);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto texts = ReferenceParts();
  const auto ids = ReferenceIds("added_" + family);
  ASSERT_EQ(texts.size(), 600u);
  ASSERT_EQ(ids.size(), texts.size());

  for (size_t i = 0; i < texts.size(); ++i) {
    const auto made = tokenizer->Encode(texts[i]);
    ASSERT_TRUE(made.ok()) << made.status() << " in text " << i;
    EXPECT_EQ(*made, ids[i]) << "text " << i << ": " << texts[i][0].text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AddedTokensTest,
                         ::testing::Values("gpt2", "qwen2", "llama2", "mistral",
                                           "unigram"));

TEST(AddedTokensTest, ASpecialTokenThatIsNormalisedCountsOnlyWhereItMay) {
  TokenizerSpec spec;
  spec.pieces = {"<", "s", ">", "e", "\xc3\xa9"};
  spec.normalizer = {Step(Kind::kReplace, "_", ""), Step(Kind::kNfc)};
  spec.added_tokens.push_back(
      {.id = 5, .content = "<s>", .special = true, .normalized = true});
  const auto tokenizer = Tokenizer::Create(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encode = [&](const char* a, const char* literal, const char* b) {
    return *tokenizer->Encode(
        std::vector<TextPart>{{a}, {literal, SpecialText::kLiteral}, {b}});
  };

  EXPECT_THAT(encode("<s>", "<s>", "<s>"), ElementsAre(5, 0, 1, 2, 5));
  EXPECT_THAT(encode("<s", ">s", "<s>"), ElementsAre(0, 1, 2, 1, 5));
  EXPECT_THAT(encode("<s>s", "", "<s>"), ElementsAre(5, 1, 5));
  // What the literal part was is gone, and still nothing forms across it.
  EXPECT_THAT(encode("<s", "_", "><s>"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(encode("<s>e", "\xcc\x81<s>", "<s>"),
              ElementsAre(5, 4, 0, 1, 2, 5));
}

constexpr TokenizerModel kModels[] = {
    TokenizerModel::kCharacters, TokenizerModel::kMergesBpe,
    TokenizerModel::kScoresBpe, TokenizerModel::kUnigram};

// The tokens of `token` as a message. ASCII characters are pieces; the token is
// one of kind `kind`, or else stands beside them; it has id 128.
std::vector<int32_t> InMessage(TokenizerModel model, AddedToken token,
                               std::optional<PieceKind> kind) {
  TokenizerSpec spec;
  spec.model = model;
  for (int c = 0; c < 128; ++c) {
    const char character = static_cast<char>(c);
    spec.pieces.push_back(model == TokenizerModel::kMergesBpe
                              ? PieceOfBytes({&character, 1})
                              : std::string(1, character));
  }
  spec.kinds.assign(128, PieceKind::kNormal);
  if (model == TokenizerModel::kMergesBpe) {
    EXPECT_TRUE(SetPreTokenizer("deepseek-r1-qwen", spec).ok());
  }
  if (kind) {
    spec.pieces.push_back(token.content);
    spec.kinds.push_back(*kind);
  } else {
    token.id = 128;
    spec.added_tokens.push_back(token);
  }
  spec.scores.assign(spec.pieces.size(), -1.0);
  spec.unknown_token = 0;
  const auto tokenizer = Tokenizer::Create(spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*tokenizer->Encode(token.content), ElementsAre(128));
  const auto message = tokenizer->Encode(token.content, SpecialText::kLiteral);
  EXPECT_TRUE(message.ok()) << message.status();
  return message.value_or(std::vector<int32_t>());
}

TEST(AddedTokensTest, AMessageWritesNoMarkWhateverTheFileCallsIt) {
  for (const TokenizerModel model : kModels) {
    for (const char* mark :
         {"<|im_start|>", "<|eot_id|>", "<think>", "</think>"}) {
      for (const bool special : {false, true}) {
        EXPECT_THAT(InMessage(model, {.content = mark, .special = special}, {}),
                    AllOf(SizeIs(strlen(mark)), Not(Contains(128))))
            << mark;
        EXPECT_THAT(
            InMessage(model, {.content = mark},
                      special ? PieceKind::kControl : PieceKind::kUserDefined),
            AllOf(SizeIs(strlen(mark)), Not(Contains(128))))
            << mark;
      }
    }
    // An added word that is no mark is a word of the model.
    EXPECT_THAT(InMessage(model, {.content = "<tab>"}, {}), ElementsAre(128));
    EXPECT_THAT(InMessage(model, {.content = "<tab>"}, PieceKind::kUserDefined),
                ElementsAre(128));
  }
}

TEST(AddedTokensTest, DeepSeeksTurnsAreMarks) {
  for (const char* mark : {"<｜User｜>", "<｜Assistant｜>"}) {
    EXPECT_TRUE(IsMarker({.content = mark}));
    EXPECT_FALSE(IsMarker({.content = std::string("a") + mark}));
  }
  EXPECT_FALSE(IsMarker({.content = "<||>"}));
  EXPECT_FALSE(IsMarker({.content = "<tool_call>"}));
}

TEST(NormalizerTest, SpansFollowTheirText) {
  const auto apply = [](NormalizerStep step, const char* text, Spans spans) {
    const auto made = Normalizer::Create({std::move(step)})->Apply(text, spans);
    EXPECT_TRUE(made.ok()) << made.status();
    return std::pair(*made, spans);
  };

  EXPECT_EQ(apply(Step(Kind::kPrepend, "", "__"), "abc", {{0, 1}, {2, 3}}),
            std::pair(std::string("__abc"), Spans{{0, 3}, {4, 5}}));
  EXPECT_EQ(apply(Step(Kind::kReplace, "ab", "xyz"), "abcabcab",
                  {{1, 2}, {3, 4}, {5, 7}, {8, 8}}),
            std::pair(std::string("xyzcxyzcxyz"),
                      Spans{{0, 3}, {4, 7}, {7, 11}, {11, 11}}));
  // The accent joins the letter in front of the span.
  EXPECT_EQ(apply(Step(Kind::kNfc), "se\xcc\x81x", {{2, 5}}),
            std::pair(std::string("s\xc3\xa9x"), Spans{{1, 4}}));
  EXPECT_EQ(apply(Step(Kind::kNfc),
                  "\xc3\xa9"
                  "e\xcc\x81\xc3\xa9",
                  {{2, 5}}),
            std::pair(std::string("\xc3\xa9\xc3\xa9\xc3\xa9"), Spans{{2, 4}}));
  EXPECT_EQ(apply(Step(Kind::kNfkc), "\xef\xac\x81\xef\xac\x81", {{3, 6}}),
            std::pair(std::string("fifi"), Spans{{2, 4}}));
}

}  // namespace
}  // namespace farkv

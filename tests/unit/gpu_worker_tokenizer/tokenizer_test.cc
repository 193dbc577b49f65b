#include "gpu_worker/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gpu_worker/tokenizer/byte_level.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"
#include "gpu_worker/tokenizer/tokenizer_files.h"
#include "gpu_worker/tokenizer/tokenizer_json.h"
#include "gpu_worker/tokenizer/utf8.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Tokenizer> FromJson(const nlohmann::json& json) {
  auto spec = ParseTokenizerJson(json.dump());
  if (!spec.ok()) return spec.status();
  return Tokenizer::Create(*std::move(spec));
}

// Every byte is a piece, with merges for "abab".
TokenizerSpec Bytes() {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kMergesBpe;
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    spec.pieces.push_back(PieceOfBytes(absl::string_view(&byte, 1)));
  }
  spec.pieces.insert(spec.pieces.end(), {"ab", "abab", "<|end|>"});
  spec.merges = {{"a", "b"}, {"ab", "ab"}};
  spec.kinds.assign(258, PieceKind::kNormal);
  spec.kinds.push_back(PieceKind::kControl);
  EXPECT_TRUE(SetPreTokenizer("gpt-2", spec).ok());
  return spec;
}

TEST(TokenizerTest, AnEmptyOneDecodesNothing) {
  EXPECT_EQ(Tokenizer().Decode(0), "");
  EXPECT_EQ(Tokenizer().vocab_size(), 0);
}

TEST(TokenizerTest, WithoutMergesTheLongestPieceIsNext) {
  const auto tokenizer =
      FromJson({{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"<", 1}}}}},
                {"added_tokens",
                 {{{"id", 2}, {"content", "<eos>"}, {"special", true}}}}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_THAT(*tokenizer->Encode("a<<eos>a"), ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(tokenizer->Decode(1), "<");
  EXPECT_EQ(tokenizer->Decode(2), "");
  EXPECT_EQ(tokenizer->Decode(77), "");
  EXPECT_EQ(tokenizer->Decode(-1), "");
  EXPECT_EQ(tokenizer->add_bos(), std::nullopt);
}

TEST(TokenizerTest, ACharacterWithoutATokenIsNamedWithItsPlace) {
  const auto tokenizer = FromJson({{"model", {{"vocab", {{"a", 0}}}}}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_THAT(std::string(tokenizer->Encode("aa?").status().message()),
              AllOf(HasSubstr("?"), HasSubstr("byte 2")));
}

TEST(TokenizerTest, TheBestMergeIsMadeFirst) {
  const auto tokenizer = Tokenizer::Create(Bytes());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_THAT(*tokenizer->Encode("xababab"), ElementsAre('x', 257, 256));
  EXPECT_EQ(tokenizer->Decode(257), "abab");
}

TEST(TokenizerTest, ASpecialTokenCountsOnlyWhereItMay) {
  const auto tokenizer = Tokenizer::Create(Bytes());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_THAT(*tokenizer->Encode("a<|end|>"), ElementsAre('a', 258));
  EXPECT_THAT(*tokenizer->Encode("<|e", SpecialText::kLiteral),
              ElementsAre('<', '|', 'e'));
  const std::vector<TextPart> parts = {{"<|end|>", SpecialText::kParsed},
                                       {"<|end|>", SpecialText::kLiteral},
                                       {"<|en", SpecialText::kLiteral},
                                       {"d|>", SpecialText::kParsed},
                                       {"<|end|>", SpecialText::kParsed}};
  const auto tokens = tokenizer->Encode(parts);
  EXPECT_EQ(tokens->front(), 258);
  EXPECT_EQ(tokens->back(), 258);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 258), 2);
  EXPECT_EQ(tokenizer->DecodeText(*tokens), "<|end|><|end|>");
  EXPECT_TRUE(tokenizer->special(258));
  TokenizerSpec whole = Bytes();
  whole.ignore_merges = true;
  whole.pre_tokenizer[0].use_gpt2_regex = false;
  EXPECT_EQ(Tokenizer::Create(whole)
                ->Encode("<|end|>", SpecialText::kLiteral)
                ->size(),
            7u);
}

TEST(TokenizerTest, TextThatIsNotUtf8IsRefusedWithItsPlace) {
  const auto tokenizer = Tokenizer::Create(Bytes());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  for (const char* text : {"ab\xff", "ab\xc3", "ab\xed\xa0\x80", "ab\xe2\x82(",
                           "ab\xf5\x80\x80\x80", "ab\xc0\x80"}) {
    EXPECT_THAT(std::string(tokenizer->Encode(text).status().message()),
                AllOf(HasSubstr("byte 2"), HasSubstr("UTF-8")));
  }
}

TEST(TokenizerTest, BytesThatAreNoCharacterDecodeToTheReplacementCharacter) {
  const auto tokenizer = Tokenizer::Create(Bytes());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  const std::vector<int32_t> tokens = {'a', 0xe2, 0x82, 'b', 0xff, 0xc3};
  EXPECT_EQ(tokenizer->DecodeText(tokens),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd");
}

// A quadratic loop would take hours, not this test's time limit.
TEST(TokenizerTest, AMillionCharactersWithoutASpaceAreOnePart) {
  const auto tokenizer = Tokenizer::Create(Bytes());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string text;
  while (text.size() < (1u << 20)) text += "ab";

  const auto tokens = tokenizer->Encode(text);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), text.size() / 4);
  for (const char* c : {"x", " ", "\n", "<", "1", "'"}) {
    std::string same;
    while (same.size() < (1u << 20)) same += c;
    EXPECT_EQ(tokenizer->Encode(same)->size(), same.size()) << c;
  }
}

TEST(TokenizerTest, ASpecThatDoesNotFitIsRefused) {
  const auto refused = [](const auto& change) {
    TokenizerSpec spec = Bytes();
    change(spec);
    return std::string(Tokenizer::Create(spec).status().message());
  };

  EXPECT_EQ(refused([](TokenizerSpec&) {}), "");
  EXPECT_THAT(refused([](auto& s) { s.kinds.pop_back(); }), HasSubstr("kinds"));
  EXPECT_THAT(refused([](auto& s) { s.pieces[5] = "a"; }), HasSubstr("piece"));
  EXPECT_THAT(refused([](auto& s) {
                s.merges.push_back({"", "a"});
              }),
              HasSubstr("merge 2"));
  EXPECT_THAT(refused([](auto& s) {
                s.merges.push_back({"a", "zz"});
              }),
              HasSubstr("merge 2"));
  EXPECT_THAT(refused([](auto& s) {
                s.merges.push_back({"b", "a"});
              }),
              HasSubstr("merge 2"));
  EXPECT_THAT(refused([](auto& s) { s.bos_token = 1000; }), HasSubstr("1000"));
  EXPECT_THAT(refused([](auto& s) { s.unknown_token = -3; }), HasSubstr("-3"));
  EXPECT_THAT(refused([](auto& s) {
                s.added_tokens.push_back({1 << 21, "<x>", true});
              }),
              HasSubstr("2097152"));
  EXPECT_THAT(refused([](auto& s) { s.model = TokenizerModel::kScoresBpe; }),
              HasSubstr("0 scores"));
  EXPECT_THAT(refused([](auto& s) {
                PreTokenizerStep step;
                step.regex = "(a";
                s.pre_tokenizer = {step};
              }),
              HasSubstr("(a"));
}

TEST(TokenizerTest, APatternThatRunsAwayIsStopped) {
  TokenizerSpec spec = Bytes();
  PreTokenizerStep step;
  step.regex = "(a|aa)+$";
  spec.pre_tokenizer.insert(spec.pre_tokenizer.begin(), step);
  const auto tokenizer = Tokenizer::Create(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_EQ(tokenizer->Encode(std::string(200, 'a') + "b").status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(TokenizerTest, ScoresOfSentencePieceMergeTheBestPieceFirst) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kScoresBpe;
  spec.pieces = {"<unk>", "a",   "b",      "\xe2\x96\x81",
                 "ab",    "bab", "<0xC3>", "<0xA9>"};
  spec.scores = {0, -1, -2, -3, -5, -4, 0, 0};
  spec.kinds = {PieceKind::kUnknown, PieceKind::kNormal, PieceKind::kNormal,
                PieceKind::kNormal,  PieceKind::kNormal, PieceKind::kNormal,
                PieceKind::kByte,    PieceKind::kByte};
  spec.unknown_token = 0;
  SetSentencePiece(/*add_space_prefix=*/true, spec);
  const auto tokenizer = Tokenizer::Create(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  // "ab" is needed for "bab", which is better than a second "ab".
  EXPECT_THAT(*tokenizer->Encode("bab"), ElementsAre(3, 5));
  EXPECT_THAT(*tokenizer->Encode("\xc3\xa9 \xc3\xb1"),
              ElementsAre(3, 6, 7, 3, 0));
  EXPECT_EQ(tokenizer->Decode(3), " ");
  EXPECT_EQ(tokenizer->DecodeText(std::vector<int32_t>{3, 6, 7, 3, 5}),
            "\xc3\xa9 bab");
  EXPECT_TRUE(tokenizer->strip_first_space());
}

TEST(PreTokenizersTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  TokenizerSpec spec;
  EXPECT_THAT(std::string(SetPreTokenizer("tekken", spec).message()),
              AllOf(HasSubstr("tekken"), HasSubstr("llama-bpe")));
}

TEST(TokenizerJsonTest, WhatDoesNotFitIsRefusedByName) {
  const auto message = [](nlohmann::json json) {
    return std::string(FromJson(json).status().message());
  };
  const nlohmann::json bpe = {{"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}};
  const auto with = [&](const char* field, nlohmann::json value) {
    nlohmann::json model = bpe;
    model[field] = std::move(value);
    return message({{"model", model}});
  };

  EXPECT_EQ(Tokenizer::Load("/nonexistent.json").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(with("merges", {"a b"}), "");
  EXPECT_EQ(with("merges", nlohmann::json::parse(R"([["a", "b"]])")), "");
  EXPECT_THAT(message({1, 2}), HasSubstr("object"));
  EXPECT_THAT(with("vocab", 3), HasSubstr("vocab"));
  EXPECT_THAT(with("vocab", {{"a", "x"}}), HasSubstr("string"));
  EXPECT_THAT(with("vocab", {{"a", -1}}), HasSubstr("-1"));
  EXPECT_THAT(with("vocab", {{"a", 4000000}}), HasSubstr("4000000"));
  EXPECT_THAT(with("vocab", {{"a", 1}, {"b", 1}}), HasSubstr("id 1"));
  EXPECT_THAT(with("merges", {"ab"}), HasSubstr("merge 0"));
  EXPECT_THAT(with("merges", {"a b", "ab ab"}), HasSubstr("merge 1"));
  EXPECT_THAT(with("merges", 7), HasSubstr("merges"));
  EXPECT_THAT(with("type", "WordPiece"), HasSubstr("WordPiece"));
  EXPECT_THAT(with("unk_token", "<unk>"), HasSubstr("<unk>"));
  EXPECT_THAT(with("byte_fallback", 1), HasSubstr("byte_fallback"));
  EXPECT_THAT(
      message({{"model", bpe}, {"normalizer", {{"type", "Lowercase"}}}}),
      AllOf(HasSubstr("normalizer"), HasSubstr("Lowercase")));
  EXPECT_THAT(message({{"model", bpe}, {"pre_tokenizer", {{"type", 1}}}}),
              HasSubstr("pre_tokenizer"));
  EXPECT_THAT(message({{"model", bpe}, {"added_tokens", {{{"id", 9}}}}}),
              HasSubstr("content"));
}

TEST(TokenizerJsonTest, TheConfigNamesTokensAndTemplate) {
  TokenizerSpec spec;
  spec.pieces = {"<s>", "</s>"};
  const nlohmann::json config = {
      {"bos_token", {{"content", "<s>"}}},
      {"eos_token", "</s>"},
      {"add_bos_token", true},
      {"chat_template", {{{"name", "default"}, {"template", "t"}}}}};

  ASSERT_TRUE(ParseTokenizerConfig(config.dump(), spec).ok());
  EXPECT_EQ(spec.bos_token, 0);
  EXPECT_EQ(spec.eos_token, 1);
  EXPECT_EQ(spec.add_bos, true);
  EXPECT_EQ(spec.chat_template, "t");
  EXPECT_FALSE(ParseTokenizerConfig(R"({"bos_token": 3})", spec).ok());
  EXPECT_FALSE(ParseTokenizerConfig("[", spec).ok());
}

TEST(TokenizerJsonTest, ATokenThatTheTextStartsWithIsRead) {
  const auto tokenizer =
      Tokenizer::Load(ReferencePath("llama3/tokenizer.json"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_EQ(tokenizer->add_bos(), true);
  ASSERT_TRUE(tokenizer->bos_token().has_value());
  EXPECT_THAT(*tokenizer->Encode("<|begin_of_text|>"),
              ElementsAre(*tokenizer->bos_token()));
  EXPECT_EQ(Tokenizer::Load(ReferencePath("gpt2/tokenizer.json"))->add_bos(),
            false);
}

TEST(ByteLevelTest, EveryByteIsSpelledAndReadBack) {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);

  EXPECT_EQ(BytesOfPiece(PieceOfBytes(bytes)), bytes);
  EXPECT_EQ(PieceOfBytes(" \n"), "\xc4\xa0\xc4\x8a");
  EXPECT_EQ(BytesOfPiece(" "), std::nullopt);
  EXPECT_EQ(BytesOfPiece("\xe4\xb8\x80"), std::nullopt);
}

TEST(Utf8Test, EveryCodePointIsReadAsItWasWritten) {
  for (uint32_t c = 0; c < 0x110000; c += 37) {
    std::string text;
    AppendUtf8(c, text);
    const Utf8Prefix prefix = ReadUtf8(text);
    if (c >= 0xd800 && c < 0xe000) {
      EXPECT_EQ(prefix.kind, Utf8Prefix::Kind::kInvalid) << c;
      continue;
    }
    EXPECT_EQ(prefix.kind, Utf8Prefix::Kind::kCharacter) << c;
    EXPECT_EQ(prefix.code_point, c);
    EXPECT_EQ(prefix.bytes, text.size());
    text.pop_back();
    if (text.empty()) continue;
    EXPECT_EQ(ReadUtf8(text).kind, Utf8Prefix::Kind::kIncomplete) << c;
  }
}

}  // namespace
}  // namespace farkv

#include "gpu_worker/model/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/gguf_writer.h"

namespace farkv {
namespace {

using ::farkv::testing::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GgufTokenizerTest : public ::testing::Test {
 protected:
  template <typename T>
  void Add(const std::string& key, T value) {
    writer_.Add("tokenizer.ggml." + key, value);
  }
  template <typename T>
  void AddArray(const std::string& key, const std::vector<T>& values) {
    writer_.AddArray<T>("tokenizer.ggml." + key, values);
  }

  void DescribeBpe(const std::string& pre) {
    writer_ = GgufWriter();
    Add("model", "gpt2");
    Add("pre", pre);
    AddArray<std::string>("tokens", {"<s>", "a", "b", "ab"});
    AddArray<int32_t>("token_type", {3, 1, 1, 1});
    AddArray<std::string>("merges", {"a b", "\xc4\xa0 b"});
  }
  void DescribeSentencePiece() {
    writer_ = GgufWriter();
    Add("model", "llama");
    AddArray<std::string>("tokens", {"<unk>", "<s>", "<0x41>", "a"});
    AddArray<int32_t>("token_type", {2, 3, 6, 1});
    AddArray<float>("scores", {0.0f, 0.0f, 0.0f, -1.5f});
  }

  absl::StatusOr<TokenizerSpec> Read() {
    bytes_ = writer_.Bytes();
    const auto file =
        GgufFile::Parse(std::as_bytes(std::span(bytes_)), "x.gguf");
    if (!file.ok()) return file.status();
    return ReadGgufTokenizer(**file);
  }
  std::string Refusal() {
    const auto spec = Read();
    EXPECT_FALSE(spec.ok());
    return std::string(spec.status().message());
  }

  GgufWriter writer_;
  std::string bytes_;
};

TEST_F(GgufTokenizerTest, AByteLevelTokenizerHasItsPiecesAndMerges) {
  DescribeBpe("smollm");
  Add("bos_token_id", uint32_t{0});
  Add("eos_token_id", uint32_t{3});
  writer_.Add("tokenizer.chat_template", "{{ messages }}");

  const auto spec = Read();

  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model, TokenizerModel::kMergesBpe);
  EXPECT_THAT(spec->pieces, ElementsAre("<s>", "a", "b", "ab"));
  EXPECT_THAT(spec->kinds, ElementsAre(PieceKind::kControl, PieceKind::kNormal,
                                       PieceKind::kNormal, PieceKind::kNormal));
  ASSERT_EQ(spec->merges.size(), 2u);
  EXPECT_EQ(spec->merges[0].left, "a");
  EXPECT_EQ(spec->merges[0].right, "b");
  EXPECT_EQ(spec->merges[1].left, "\xc4\xa0");
  EXPECT_FALSE(spec->pre_tokenizer.empty());
  EXPECT_EQ(spec->add_bos, false);
  EXPECT_EQ(spec->bos_token, 0);
  EXPECT_EQ(spec->eos_token, 3);
  EXPECT_EQ(spec->unknown_token, std::nullopt);
  EXPECT_EQ(spec->chat_template, "{{ messages }}");
}

TEST_F(GgufTokenizerTest, ASentencePieceTokenizerHasItsScoresAndBytes) {
  DescribeSentencePiece();
  Add("unknown_token_id", uint32_t{0});

  const auto spec = Read();

  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model, TokenizerModel::kScoresBpe);
  EXPECT_THAT(spec->scores, ElementsAre(0.0, 0.0, 0.0, -1.5));
  EXPECT_EQ(spec->kinds[0], PieceKind::kUnknown);
  EXPECT_EQ(spec->kinds[2], PieceKind::kByte);
  EXPECT_TRUE(spec->byte_fallback);
  EXPECT_EQ(spec->unknown_token, 0);
  EXPECT_EQ(spec->add_bos, true);
}

TEST_F(GgufTokenizerTest, TheBeginTokenIsAddedAsTheFileSaysOrItsKindHasIt) {
  DescribeBpe("llama-bpe");
  EXPECT_EQ(Read()->add_bos, true);
  Add("add_bos_token", false);
  EXPECT_EQ(Read()->add_bos, false);
  DescribeBpe("qwen2");
  EXPECT_EQ(Read()->add_bos, false);
  Add("add_bos_token", true);
  EXPECT_EQ(Read()->add_bos, true);
}

TEST_F(GgufTokenizerTest, WhatIsMissingWrongOrUnknownIsNamed) {
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer.ggml.model"));
  Add("model", "bert");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("bert"), HasSubstr("llama")));
  DescribeBpe("unheard-of");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("x.gguf"), HasSubstr("unheard-of")));
  writer_ = GgufWriter();
  Add("model", "gpt2");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer.ggml.merges"));
  writer_ = GgufWriter();
  Add("model", "llama");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer.ggml.scores"));
}

TEST_F(GgufTokenizerTest, HowTextsAreCutIsNotGuessed) {
  DescribeBpe("default");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("\"default\""), HasSubstr("smollm")));
  writer_ = GgufWriter();
  Add("model", "gpt2");
  AddArray<std::string>("tokens", {"a", "b", "ab"});
  AddArray<std::string>("merges", {"a b"});
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("x.gguf"), HasSubstr("no key tokenizer.ggml.pre"),
                    HasSubstr("llama-bpe")));
  Add("pre", "gpt-2");
  EXPECT_TRUE(Read().ok()) << Read().status();
}

TEST_F(GgufTokenizerTest, MalformedArraysAreNamed) {
  for (const char* merge : {"ab", "", " ", "a ", " a"}) {
    writer_ = GgufWriter();
    Add("model", "gpt2");
    AddArray<std::string>("tokens", {"a"});
    AddArray<std::string>("merges", {merge});
    EXPECT_THAT(Refusal(), HasSubstr("tokenizer.ggml.merges")) << merge;
  }
  for (const int32_t kind : {0, 7, -1}) {
    writer_ = GgufWriter();
    Add("model", "llama");
    AddArray<std::string>("tokens", {"a"});
    AddArray<float>("scores", {0.0f});
    AddArray<int32_t>("token_type", {kind});
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("tokenizer.ggml.token_type"),
                                 HasSubstr(std::to_string(kind))));
  }
  DescribeSentencePiece();
  Add("bos_token_id", int32_t{-1});
  EXPECT_THAT(Refusal(), HasSubstr("bos_token_id is -1"));
}

}  // namespace
}  // namespace farkv

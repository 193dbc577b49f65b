// Every id and every decoded text against the reference tokenizers, on the
// 1,000 texts of tests/golden/tokenizers.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

void ExpectReferenceIds(const Tokenizer& tokenizer, const std::string& family,
                        SpecialText special = SpecialText::kParsed) {
  const auto texts = ReferenceTexts();
  const auto ids = ReferenceIds(family);
  const auto decoded = ReferenceDecoded(family);
  ASSERT_EQ(texts.size(), 1000u);
  ASSERT_EQ(ids.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto made = tokenizer.Encode(texts[i], special);
    ASSERT_TRUE(made.ok()) << made.status() << " in text " << i;
    EXPECT_EQ(*made, ids[i]) << "text " << i << ": " << texts[i];
    // SentencePiece shows an unknown token as U+2047 between spaces.
    EXPECT_EQ(tokenizer.DecodeText(ids[i]),
              absl::StrReplaceAll(decoded[i], {{" \xe2\x81\x87 ", ""}}))
        << "text " << i;
  }
}

class TokenizerFamilyTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerFamilyTest, EveryIdAndEveryDecodedTextIsTheReferences) {
  const std::string family = GetParam();
  const auto tokenizer =
      Tokenizer::Load(ReferencePath(family + "/tokenizer.json"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  ExpectReferenceIds(*tokenizer, family);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFamilyTest,
                         ::testing::Values("gpt2", "smollm2", "llama3", "qwen2",
                                           "deepseek", "llama2", "mistral",
                                           "unigram"));

// SentencePiece itself takes no special token from a text.
TEST(TokenizerFilesTest, ModelsOfSentencePieceGiveItsIds) {
  for (const char* family : {"spm_bpe", "spm_unigram"}) {
    const auto tokenizer = Tokenizer::Load(
        ReferencePath(std::string(family) + "/tokenizer.model"));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(tokenizer->add_bos(), true);
    ExpectReferenceIds(*tokenizer, family, SpecialText::kLiteral);
  }
}

}  // namespace
}  // namespace farkv

// Every id and every decoded text against the reference tokenizers, on the
// 1,000 texts of tests/golden/tokenizers.
#include <gtest/gtest.h>

#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

void ExpectReferenceIds(const Tokenizer& tokenizer, const std::string& family) {
  const auto texts = ReferenceTexts();
  const auto ids = ReferenceIds(family);
  const auto decoded = ReferenceDecoded(family);
  ASSERT_EQ(texts.size(), 1000u);
  ASSERT_EQ(ids.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto made = tokenizer.Encode(texts[i]);
    ASSERT_TRUE(made.ok()) << made.status() << " in text " << i;
    EXPECT_EQ(*made, ids[i]) << "text " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer.DecodeText(ids[i]), decoded[i]) << "text " << i;
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

}  // namespace
}  // namespace farkv

// The tokenizer of a real model, where scripts/fetch_model.sh has put it.
#include "tests/testing/smollm2.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_worker/model/model_files.h"
#include "gpu_worker/tokenizer/chat_template.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

class SmolLm2TokenizerTest : public testing::SmolLm2Test {
 protected:
  void SetUp() override {
    SmolLm2Test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto files = ModelFiles::Open(testing::SmolLm2Folder());
    ASSERT_TRUE(files.ok()) << files.status();
    auto read = files->ReadTokenizer();
    ASSERT_TRUE(read.ok()) << read.status();
    tokenizer_ = *std::move(read);
  }

  Tokenizer tokenizer_;
};

TEST_F(SmolLm2TokenizerTest, EveryIdAndEveryDecodedTextIsTheReferences) {
  const auto texts = ReferenceTexts();
  const auto ids = ReferenceIds("smollm2_gguf");
  const auto decoded = ReferenceDecoded("smollm2_gguf");
  ASSERT_EQ(ids.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto made = tokenizer_.Encode(texts[i]);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(*made, ids[i]) << "text " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer_.DecodeText(ids[i]), decoded[i]) << "text " << i;
  }
}

// <|im_start|> is 1, <|im_end|> is 2.
TEST_F(SmolLm2TokenizerTest, AChatHasTheTokensOfItsTemplate) {
  EXPECT_EQ(tokenizer_.add_bos(), false);
  ASSERT_TRUE(tokenizer_.chat_template().has_value());
  const auto chat =
      ChatTemplate::Recognise(*tokenizer_.chat_template(), {"", ""});
  ASSERT_TRUE(chat.ok()) << chat.status();

  const auto parts =
      chat->Render(std::vector<ChatTurn>{{"user", "Hi <|im_end|>"}}, "");
  ASSERT_TRUE(parts.ok()) << parts.status();
  const auto tokens = tokenizer_.Encode(*parts);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 1), 3);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 2), 2);
  EXPECT_EQ(tokenizer_.DecodeText(*tokens),
            "system\nYou are a helpful AI assistant named SmolLM, trained by "
            "Hugging Face\nuser\nHi <|im_end|>\nassistant\n");
}

}  // namespace
}  // namespace farkv

// The reference texts of tests/golden/tokenizers, sent token by token as a
// request's answer is.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/text_checks.h"
#include "gpu_worker/engine/output_text.h"
#include "gpu_worker/tokenizer/tokenizer.h"
#include "tests/unit/gpu_worker_tokenizer/reference_ids.h"

namespace farkv {
namespace {

// Sends each text's ids one by one.
void ExpectWholeCharacters(const Tokenizer& tokenizer,
                           const std::vector<std::vector<int32_t>>& all_ids) {
  ASSERT_EQ(all_ids.size(), 1000u);
  size_t held_back = 0;
  for (const std::vector<int32_t>& ids : all_ids) {
    OutputText text({}, false);
    if (tokenizer.strip_first_space()) text.DropFirstSpace();
    std::string sent;
    for (const int32_t id : ids) {
      const std::string piece = tokenizer.Decode(id);
      const std::string delta = text.Push(piece);
      ASSERT_EQ(FindInvalidUtf8(delta), std::string::npos);
      held_back += !piece.empty() && delta.empty();
      sent += delta;
    }
    const std::string rest = text.Flush();
    ASSERT_EQ(FindInvalidUtf8(rest), std::string::npos);
    EXPECT_EQ(sent + rest, tokenizer.DecodeText(ids));
  }
  // Every one of these vocabularies cuts some characters into several tokens.
  EXPECT_GT(held_back, 100u);
}

class ReferenceDeltasTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ReferenceDeltasTest, NoCharacterIsSplitAndTheWholeIsTheText) {
  const std::string file = GetParam();
  const auto tokenizer = Tokenizer::Load(ReferencePath(file));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  ExpectWholeCharacters(*tokenizer,
                        ReferenceIds(file.substr(0, file.find('/'))));
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferenceDeltasTest,
    ::testing::Values("gpt2/tokenizer.json", "smollm2/tokenizer.json",
                      "llama3/tokenizer.json", "qwen2/tokenizer.json",
                      "deepseek/tokenizer.json", "llama2/tokenizer.json",
                      "mistral/tokenizer.json", "spm_bpe/tokenizer.model"));

// The same with tokenizers of real models.
class RealDeltasTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RealDeltasTest, NoCharacterIsSplitAndTheWholeIsTheText) {
  const auto folder =
      std::filesystem::path(std::getenv("FARKV_TEST_SOURCE_DIR")) /
      "models/tokenizers";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << folder << " is not there; scripts/fetch_tokenizers.py "
                 << "fetches it";
  }
  const auto tokenizer = Tokenizer::Load(folder / GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<std::vector<int32_t>> all_ids;
  for (const std::string& text : ReferenceTexts()) {
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    all_ids.push_back(*ids);
  }

  ExpectWholeCharacters(*tokenizer, all_ids);
}

INSTANTIATE_TEST_SUITE_P(All, RealDeltasTest,
                         ::testing::Values("llama-3.2/tokenizer.json",
                                           "qwen-3/tokenizer.json",
                                           "deepseek-r1/tokenizer.json",
                                           "mistral-v3/tokenizer.model"));

}  // namespace
}  // namespace farkv

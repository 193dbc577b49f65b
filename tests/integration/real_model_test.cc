// SmolLM2-135M-Instruct out of its GGUF file, tokenizer and all; skipped where
// scripts/fetch_model.sh has not fetched it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/engine_run.h"
#include "gpu_worker/model/model_files.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

std::string ModelFolder() {
  const char* source = std::getenv("FARKV_TEST_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/models/smollm2";
}

// The greedy continuation of `prompt`.
std::string Continue(const std::string& prompt, int64_t tokens) {
  const auto files = ModelFiles::Open(ModelFolder());
  EXPECT_TRUE(files.ok()) << files.status();
  const auto tokenizer = files->ReadTokenizer();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  EngineOptions options;
  options.model = ModelFolder();
  options.tiering.t0_bytes = uint64_t{64} << 20;
  GenerationRequest request;
  const auto ids = tokenizer->Encode(prompt);
  EXPECT_TRUE(ids.ok()) << ids.status();
  request.prompt = *ids;
  request.max_new_tokens = tokens;
  const auto runs = bench::RunRequests(options, {request});
  EXPECT_TRUE(runs.ok()) << runs.status();
  return runs.ok() ? tokenizer->DecodeText(runs->front().tokens) : "";
}

TEST(RealModelTest, SmolLm2AnswersSensiblyAndStopsByItself) {
  if (!std::filesystem::exists(ModelFolder())) {
    GTEST_SKIP() << "run scripts/fetch_model.sh smollm2 first";
  }

  const std::string answer = Continue(
      "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
      "<|im_start|>assistant\n",
      100);

  EXPECT_THAT(answer, HasSubstr("capital of France is Paris."));
  EXPECT_LT(answer.size(), 200u) << answer;
}

}  // namespace
}  // namespace farkv

// SmolLM2-135M-Instruct out of its GGUF file, tokenizer and all; skipped where
// scripts/fetch_model.sh has not fetched it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bench/engine_run.h"
#include "gpu_worker/model/model_files.h"
#include "tests/testing/smollm2.h"

namespace farkv {
namespace {

using ::farkv::testing::SmolLm2Folder;
using ::farkv::testing::SmolLm2Test;
using ::testing::HasSubstr;

// The greedy continuation of `prompt`.
std::string Continue(const std::string& prompt, int64_t tokens) {
  const auto files = ModelFiles::Open(SmolLm2Folder());
  EXPECT_TRUE(files.ok()) << files.status();
  const auto tokenizer = files->ReadTokenizer();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  EngineOptions options;
  options.model = SmolLm2Folder();
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

TEST_F(SmolLm2Test, AnswersSensiblyAndStopsByItself) {
  const std::string answer = Continue(
      "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
      "<|im_start|>assistant\n",
      100);

  EXPECT_THAT(answer, HasSubstr("capital of France is Paris."));
  EXPECT_LT(answer.size(), 200u) << answer;
}

}  // namespace
}  // namespace farkv

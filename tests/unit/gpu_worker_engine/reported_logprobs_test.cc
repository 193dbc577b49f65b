// Log probabilities as the engine reports them: the same bits whether a token
// was of the prompt, forced or chosen, in any chunk, crowd, and after rows were
// lost.
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Reported {
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> prompt, output;
  GenerationEnd end;
};

class ReportedLogprobsTest : public EngineOverNodes {
 protected:
  static Reported Read(GenerationStream& stream) {
    Reported all;
    for (;;) {
      GenerationEvent event = stream.WaitAndTake();
      // A prompt's come first.
      if (!event.prompt_logprobs.empty()) {
        EXPECT_THAT(all.tokens, SizeIs(0));
      }
      all.tokens.insert(all.tokens.end(), event.tokens.begin(),
                        event.tokens.end());
      all.prompt.insert(all.prompt.end(), event.prompt_logprobs.begin(),
                        event.prompt_logprobs.end());
      all.output.insert(all.output.end(), event.logprobs.begin(),
                        event.logprobs.end());
      if (!event.end) continue;
      all.end = *std::move(event.end);
      return all;
    }
  }
  Reported ReadAlone(const GenerationRequest& request) {
    EngineOptions options = options_;
    options.tiering.t0_bytes = uint64_t{256} << 20;
    const auto engine = Engine::Create(std::move(options)).value();
    return Read(*engine->Submit(request).value());
  }
  static GenerationRequest OfPrompt(const std::string& id, int64_t prompt) {
    GenerationRequest request = Request(id, prompt, 3);
    request.prompt_logprobs = true;
    request.top_logprobs = 2;
    return request;
  }
};

TEST_F(ReportedLogprobsTest, APromptHasThoseOfTheSameTokensForced) {
  const GenerationRequest prompted = OfPrompt("main", 100);
  GenerationRequest forced = Request("main", 1, 99);
  forced.logprobs = true;
  forced.top_logprobs = 2;
  forced.prompt = {prompted.prompt[0]};
  forced.forced.assign(prompted.prompt.begin() + 1, prompted.prompt.end());

  const Reported of_prompt = ReadAlone(prompted);
  const Reported of_output = ReadAlone(forced);

  ASSERT_THAT(of_prompt.prompt, SizeIs(100));
  EXPECT_THAT(of_prompt.output, SizeIs(0));
  EXPECT_EQ(of_prompt.prompt[0], TokenLogprobs());
  ASSERT_THAT(of_output.output, SizeIs(99));
  EXPECT_THAT(of_output.prompt, SizeIs(0));
  for (size_t i = 1; i < 100; ++i) {
    ASSERT_EQ(of_prompt.prompt[i], of_output.output[i - 1]) << i;
    EXPECT_EQ(of_prompt.prompt[i].chosen->token, prompted.prompt[i]);
    EXPECT_THAT(of_prompt.prompt[i].top, SizeIs(2));
  }
}

TEST_F(ReportedLogprobsTest, ChunksAndCompanyChangeNoBit) {
  const GenerationRequest request = OfPrompt("main", 150);
  const Reported alone = ReadAlone(request);
  for (const int chunk : {1, 7, 33, 64}) {
    options_.prefill_chunk = chunk;
    EXPECT_EQ(ReadAlone(request).prompt, alone.prompt) << chunk;
  }
  options_.prefill_chunk = 64;
  options_.max_sequences = 4;
  Start(4096, 0);
  std::vector<std::shared_ptr<GenerationStream>> all;
  for (const char* id : {"b", "cc", "ddd"}) {
    all.push_back(Submit(OfPrompt(id, 90)));
  }
  EXPECT_EQ(Read(*Submit(request)).prompt, alone.prompt);
  for (const auto& stream : all) EXPECT_THAT(Read(*stream).prompt, SizeIs(90));
}

TEST_F(ReportedLogprobsTest, APromptOfOneTokenHasOneThatIsEmpty) {
  const Reported all = ReadAlone(OfPrompt("one", 1));
  ASSERT_THAT(all.prompt, SizeIs(1));
  EXPECT_FALSE(all.prompt[0].chosen.has_value());
  EXPECT_THAT(all.tokens, SizeIs(3));
}

// Each chunk is reported once, however often its rows are lost.
TEST_F(ReportedLogprobsTest, APromptThatIsProcessedAgainIsReportedOnce) {
  options_.placement.prompt_in_t0 = false;
  options_.prefill_chunk = 32;
  const GenerationRequest request = OfPrompt("main", 600);
  const Reported alone = ReadAlone(request);
  std::set<uint64_t> damaged;
  a_.EditFetches([&](FetchReply& reply, std::vector<std::byte>& rows) {
    for (const FetchReplyItem& item : reply.items) {
      if (item.page_index != 0 || rows.empty()) continue;
      if (damaged.size() < 2) damaged.insert(item.generation.value);
      if (damaged.contains(item.generation.value)) rows[0] ^= std::byte{1};
    }
  });
  Start(ShareInSets(request) + 2, 1);

  const Reported lost = Read(*Submit(request));

  EXPECT_EQ(lost.prompt, alone.prompt);
  EXPECT_EQ(lost.tokens, alone.tokens);
  EXPECT_GE(Recoveries(), 1);
  engine_ = nullptr;  // before what it refers to
}

// What is reported is the model's word, not what bias, penalties and
// temperature made of it.
TEST_F(ReportedLogprobsTest, TheyAreOfTheModelsOwnLogits) {
  GenerationRequest plain = Request("main", 32, 40);
  plain.logprobs = true;
  plain.top_logprobs = 20;
  GenerationRequest edited = plain;
  edited.sampling.temperature = 20.0f;
  edited.sampling.repetition_penalty = 1.5f;
  edited.sampling.presence_penalty = 2.0f;
  edited.sampling.logit_bias = {{3, 5.0f}};
  const Reported hot = ReadAlone(edited);
  plain.forced = hot.tokens;

  const Reported forced = ReadAlone(plain);

  EXPECT_EQ(forced.output, hot.output);
  for (size_t i = 0; i < hot.tokens.size(); ++i) {
    const TokenLogprobs& entry = hot.output[i];
    EXPECT_EQ(entry.chosen->token, hot.tokens[i]);
    ASSERT_THAT(entry.top, SizeIs(20));
    EXPECT_LE(entry.chosen->logprob, entry.top[0].logprob);
    for (size_t k = 1; k < 20; ++k) {
      EXPECT_LE(entry.top[k].logprob, entry.top[k - 1].logprob);
    }
  }
}

TEST_F(ReportedLogprobsTest, MoreThanTwentyOrWithoutLogprobsIsRefused) {
  GenerationRequest request = Request("main", 4, 3);
  const auto refusal = [&request] {
    const absl::Status status = request.Validate(100, 1000);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  request.logprobs = true;
  request.top_logprobs = 21;
  EXPECT_THAT(refusal(), HasSubstr("top_logprobs is 21, must lie in [0, 20]"));
  request.top_logprobs = -1;
  EXPECT_THAT(refusal(), HasSubstr("top_logprobs is -1"));
  request.top_logprobs = 3;
  EXPECT_TRUE(request.Validate(100, 1000).ok());
  request.logprobs = false;
  EXPECT_THAT(refusal(), HasSubstr("top_logprobs is 3, must be 0 without"));
}

}  // namespace
}  // namespace farkv

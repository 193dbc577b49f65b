#include "gpu_worker/engine/generation_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TokenLogprobs Entry(int32_t token) {
  TokenLogprobs entry;
  entry.chosen = TokenLogprob{token, -1.0f};
  return entry;
}

TEST(GenerationStreamTest, EventsThatWereNotTakenMergeByOutput) {
  GenerationStream stream("id", 2);
  stream.Append(0, "a", 1);
  stream.Append(1, "x", 7);
  stream.Append(0, "b", 2);

  const GenerationEvent first = stream.Take(), second = stream.Take();

  EXPECT_EQ(first.output, 0);
  EXPECT_EQ(first.text, "ab");
  EXPECT_THAT(first.tokens, ElementsAre(1, 2));
  EXPECT_EQ(second.output, 1);
  EXPECT_THAT(second.tokens, ElementsAre(7));
  EXPECT_TRUE(stream.Take().empty());
}

// However fast one of them is.
TEST(GenerationStreamTest, OutputsTakeTurns) {
  GenerationStream stream("id", 3);
  for (const int32_t output : {0, 1, 2}) stream.Append(output, "", 1);
  std::vector<int32_t> turns;
  for (int i = 0; i < 3; ++i) {
    turns.push_back(stream.Take().output);
    stream.Append(0, "", 1);
  }
  EXPECT_THAT(turns, ElementsAre(0, 1, 2));
}

TEST(GenerationStreamTest, EachOutputEndsOnceAndForItself) {
  GenerationStream stream("id", 3);
  GenerationEnd length, cancelled;
  length.reason = FinishReason::kLength;
  cancelled.reason = FinishReason::kCancelled;
  EXPECT_EQ(stream.outputs_left(), 3);
  stream.Finish(1, "end", length);
  EXPECT_EQ(stream.outputs_left(), 2);
  stream.FinishAll(cancelled);
  EXPECT_EQ(stream.outputs_left(), 0);

  std::vector<FinishReason> reasons(3);
  for (int i = 0; i < 3; ++i) {
    const GenerationEvent event = stream.WaitAndTake();
    ASSERT_TRUE(event.end.has_value());
    reasons[static_cast<size_t>(event.output)] = event.end->reason;
  }
  EXPECT_THAT(reasons,
              ElementsAre(FinishReason::kCancelled, FinishReason::kLength,
                          FinishReason::kCancelled));
  EXPECT_TRUE(stream.Take().empty());
}

// What a slow reader finds fits its messages all the same.
TEST(GenerationStreamTest, LogProbabilitiesComeInBoundedPiecesBeforeTheEnd) {
  GenerationStream stream("id");
  std::vector<TokenLogprobs> prompt(1300, Entry(3));
  stream.AppendPrompt(0, prompt);
  for (int32_t token = 0; token < 700; ++token) {
    stream.Append(0, "t", token, Entry(token));
  }
  stream.Finish(0, "!", {});

  size_t prompts = 0;
  std::vector<int32_t> tokens;
  for (bool ended = false; !ended;) {
    const GenerationEvent event = stream.Take();
    ASSERT_FALSE(event.empty());
    ASSERT_LE(event.prompt_logprobs.size(), 512u);
    ASSERT_LE(event.tokens.size(), 512u);
    ASSERT_THAT(event.logprobs, SizeIs(event.tokens.size()));
    for (size_t i = 0; i < event.tokens.size(); ++i) {
      EXPECT_EQ(event.logprobs[i].chosen->token, event.tokens[i]);
    }
    prompts += event.prompt_logprobs.size();
    if (!event.tokens.empty()) {
      EXPECT_EQ(prompts, 1300u);
    }
    tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
    ended = event.end.has_value();
  }
  EXPECT_EQ(prompts, 1300u);
  EXPECT_THAT(tokens, SizeIs(700));
  EXPECT_TRUE(stream.Take().empty());
}

TEST(GenerationStreamTest, WithoutLogProbabilitiesNothingIsCut) {
  GenerationStream stream("id");
  for (int32_t token = 0; token < 700; ++token) stream.Append(0, "", token);
  EXPECT_THAT(stream.Take().tokens, SizeIs(700));
  EXPECT_THAT(stream.Take().tokens, IsEmpty());
}

}  // namespace
}  // namespace farkv

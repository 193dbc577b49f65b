#include "gpu_worker/engine/thoughts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gpu_worker/engine/running_sequence.h"

namespace farkv {
namespace {

constexpr int32_t kStart = 2, kEnd = 3;

// Characters and, if so, a token for each mark.
Tokenizer MakeTokenizer(bool with_marks) {
  TokenizerSpec spec;
  spec.pieces = {"a", "b"};
  if (with_marks)
    spec.pieces.insert(spec.pieces.end(), {"<think>", "</think>"});
  spec.kinds.assign(spec.pieces.size(), PieceKind::kNormal);
  for (size_t i = 2; i < spec.kinds.size(); ++i) {
    spec.kinds[i] = PieceKind::kControl;
  }
  for (const char c : std::string("<think>/")) {
    spec.pieces.emplace_back(1, c);
    spec.kinds.push_back(PieceKind::kNormal);
  }
  return Tokenizer::Create(spec).value();
}

int64_t Count(const std::vector<int32_t>& prompt,
              const std::vector<int32_t>& output) {
  ThoughtCounter counter(ThoughtMarks{kStart, kEnd}, prompt);
  for (const int32_t token : output) counter.AddOutput(token);
  return counter.count();
}

TEST(ThoughtsTest, MarksAreFoundWhereEachIsOneToken) {
  const auto marks = FindThoughtMarks(MakeTokenizer(true));
  ASSERT_TRUE(marks.has_value());
  EXPECT_EQ(marks->start, kStart);
  EXPECT_EQ(marks->end, kEnd);
  EXPECT_FALSE(FindThoughtMarks(MakeTokenizer(false)).has_value());
  EXPECT_FALSE(FindThoughtMarks(Tokenizer()).has_value());
}

TEST(ThoughtsTest, TokensBetweenTheMarksCountAndTheMarksDoNot) {
  EXPECT_EQ(Count({0}, {kStart, 0, 1, 0, kEnd, 1, 1}), 3);
  EXPECT_EQ(Count({0}, {0, 1}), 0);
  EXPECT_EQ(Count({0}, {kStart, kEnd}), 0);
  // Cut within a thought; one thought behind another.
  EXPECT_EQ(Count({0}, {1, kStart, 0, 1}), 2);
  EXPECT_EQ(Count({0}, {kStart, 0, kEnd, 1, kStart, 0, 0, kEnd}), 3);
}

TEST(ThoughtsTest, APromptMayEndWithinAThought) {
  EXPECT_EQ(Count({0, kStart, 1}, {0, 1, kEnd, 0}), 2);
  // That of an earlier turn has ended.
  EXPECT_EQ(Count({kStart, 1, kEnd, 0}, {0, 1}), 0);
}

TEST(ThoughtsTest, WithoutMarksNothingCounts) {
  ThoughtCounter counter(std::nullopt, std::vector<int32_t>{kStart});
  counter.AddOutput(0);
  EXPECT_EQ(counter.count(), 0);
}

// From the sequence's tokens to its end.
TEST(ThoughtsTest, TheEndOfAnOutputTellsItsThoughts) {
  GenerationRequest request;
  request.prompt = {0, kStart};
  request.forced = {0, 1, kEnd, 1};
  request.max_new_tokens = 4;
  const Tokenizer tokenizer = MakeTokenizer(true);
  RunningSequence sequence(request, 0, std::make_shared<GenerationStream>("id"),
                           SessionId(), {});
  sequence.SetThoughts(FindThoughtMarks(tokenizer));
  std::vector<float> logits(static_cast<size_t>(tokenizer.vocab_size()));
  std::optional<GenerationEnd> end;
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(end.has_value());
    end = sequence.Accept(logits, tokenizer, {});
  }

  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->completion_tokens, 4);
  EXPECT_EQ(end->reasoning_tokens, 2);
}

}  // namespace
}  // namespace farkv

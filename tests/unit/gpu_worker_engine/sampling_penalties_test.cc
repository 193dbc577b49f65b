#include "gpu_worker/engine/sampling_penalties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/random.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;

std::vector<float> Edited(const SamplingOptions& options,
                          const std::vector<int32_t>& prompt,
                          const std::vector<int32_t>& output,
                          std::vector<float> logits,
                          const std::vector<int32_t>& ruled_out = {}) {
  LogitEdits edits(options, prompt);
  for (const int32_t token : output) edits.AddOutput(token);
  edits.Apply(options, ruled_out, logits);
  return logits;
}

TEST(SamplingPenaltiesTest, NothingAskedForChangesNothing) {
  const std::vector<float> logits = {0.5f, -1.0f, 3.0f};
  EXPECT_EQ(Edited({}, {0, 1}, {2, 2}, logits), logits);
}

TEST(SamplingPenaltiesTest, RepetitionIsOfPromptAndOutputAndTurnsWithTheSign) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;

  EXPECT_THAT(Edited(options, {0, 1, 1}, {2, 2}, {4, -4, 1, 8, -8}),
              ElementsAre(2, -8, 0.5, 8, -8));
}

TEST(SamplingPenaltiesTest, FrequencyAndPresenceAreOfTheOutputOnly) {
  SamplingOptions options;
  options.frequency_penalty = 0.5f;
  EXPECT_THAT(Edited(options, {0, 1, 1}, {1, 2, 2, 2}, {4, 4, 4, 4}),
              ElementsAre(4, 3.5, 2.5, 4));
  options = {};
  options.presence_penalty = 0.25f;
  EXPECT_THAT(Edited(options, {0, 1, 1}, {1, 2, 2, 2}, {4, 4, 4, 4}),
              ElementsAre(4, 3.75, 3.75, 4));
  // The other way round they favour what was there.
  options.presence_penalty = -2.0f;
  EXPECT_THAT(Edited(options, {0}, {1}, {4, 4, 4}), ElementsAre(4, 6, 4));
}

TEST(SamplingPenaltiesTest, ABiasIsAddedBeforeThePenalties) {
  SamplingOptions options;
  options.logit_bias = {{0, 3.0f}, {2, -100.0f}};
  EXPECT_THAT(Edited(options, {}, {}, {1, 1, 1}), ElementsAre(4, 1, -99));
  // -1 + 3 is positive, so it is divided.
  options.repetition_penalty = 2.0f;
  options.frequency_penalty = 1.0f;
  EXPECT_THAT(Edited(options, {}, {0}, {-1, 1, 1}), ElementsAre(0, 1, -99));
}

TEST(SamplingPenaltiesTest, WhatIsRuledOutStaysOutWhateverIsAdded) {
  SamplingOptions options;
  options.logit_bias = {{1, 100.0f}};
  options.presence_penalty = -2.0f;
  options.repetition_penalty = 0.5f;

  const auto logits = Edited(options, {1}, {1, 2}, {1, 1, 1}, {1, 1});
  EXPECT_EQ(logits[0], 1.0f);
  EXPECT_EQ(logits[1], -HUGE_VALF);
  EXPECT_EQ(logits[2], 4.0f);
  EXPECT_EQ(SampleToken(logits, {}, 0), 2);
}

// There must be something to choose.
TEST(SamplingPenaltiesTest, WhereAllWouldBeRuledOutNoneIs) {
  EXPECT_THAT(Edited({}, {}, {}, {1, 2}, {0, 1, 0}), ElementsAre(1, 2));
}

// By the definition, over the whole vocabulary.
std::vector<float> EditedSlowly(const SamplingOptions& options,
                                const std::vector<int32_t>& prompt,
                                const std::vector<int32_t>& output,
                                std::vector<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<int32_t>(i);
    for (const auto& [id, bias] : options.logit_bias) {
      if (id == token) logits[i] += bias;
    }
    const auto times = std::count(output.begin(), output.end(), token);
    const bool seen =
        times > 0 || std::count(prompt.begin(), prompt.end(), token) > 0;
    if (seen && logits[i] > 0)
      logits[i] /= options.repetition_penalty;
    else if (seen)
      logits[i] *= options.repetition_penalty;
    if (times == 0) continue;
    logits[i] -= options.frequency_penalty * static_cast<float>(times);
    logits[i] -= options.presence_penalty;
  }
  return logits;
}

TEST(SamplingPenaltiesTest, EveryMixHasTheBitsOfTheDefinition) {
  constexpr uint64_t kVocabulary = 50;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t draws = 0;
    const auto unit = [&] { return ToUnit(CounterDraw(seed, {++draws})); };
    const auto between = [&](double low, double high) {
      return static_cast<float>(low + (high - low) * unit());
    };
    const auto tokens = [&](size_t count) {
      std::vector<int32_t> ids(count);
      for (int32_t& id : ids) {
        id = static_cast<int32_t>(unit() * kVocabulary);
      }
      return ids;
    };
    SamplingOptions options;
    if (unit() < 0.7) options.repetition_penalty = between(0.5, 2);
    if (unit() < 0.7) options.frequency_penalty = between(-2, 2);
    if (unit() < 0.7) options.presence_penalty = between(-2, 2);
    for (int32_t id = 0; id < 50; id += 7) {
      options.logit_bias.emplace_back(id, between(-100, 100));
    }
    std::vector<float> logits(kVocabulary);
    for (float& logit : logits) logit = between(-20, 20);
    const auto prompt = tokens(20), output = tokens(40);

    ASSERT_EQ(Edited(options, prompt, output, logits),
              EditedSlowly(options, prompt, output, logits))
        << seed;
  }
}

}  // namespace
}  // namespace farkv

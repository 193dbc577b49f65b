#include "common/policy/destruction_error.h"

#include <cmath>
#include <random>

#include "common/policy/panel_math.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using testing::F1;
using testing::RandomHead;

std::vector<float> Weights(const testing::Head& head, int64_t rows) {
  const HeadPanels keys = head.Keys();
  std::vector<float> logits(static_cast<size_t>(2 * keys.padded()));
  MultiplyPanels(head.Window().data.data(), 2, keys, logits.data());
  for (float& x : logits) x *= head.Window().scale;
  float* last = logits.data() + keys.padded();
  SoftmaxInPlace(last, rows);
  return std::vector<float>(last, last + rows);
}

// The output without the destroyed rows, less the output with all, by
// attending twice.
double MeasuredError(std::span<const float> weights, testing::Head& head,
                     int32_t dim, std::span<const uint8_t> destroyed) {
  double kept = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (destroyed[i] == 0) kept += weights[i];
  }
  double square = 0;
  for (int32_t c = 0; c < dim; ++c) {
    double all = 0, without = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double term = weights[i] * head.value(static_cast<int64_t>(i))[c];
      all += term;
      if (destroyed[i] == 0) without += term / kept;
    }
    square += (without - all) * (without - all);
  }
  return std::sqrt(square);
}

// ALGORITHMS 1.5: head A, query 7, row 3 goes.
TEST(DestructionErrorTest, TheFixture) {
  F1 f1;
  f1.Only(0);
  const std::vector<float> weights = Weights(f1, 8);
  const std::vector<uint8_t> destroyed = {0, 0, 0, 1, 0, 0, 0, 0};

  const DestructionError error =
      ErrorOfDestroying(weights, f1.Input(0).values, destroyed);

  EXPECT_NEAR(error.mass, .0229384, 5e-8);
  EXPECT_NEAR(error.error, .2595922, 5e-7);
  EXPECT_NEAR(error.error, MeasuredError(weights, f1, 2, destroyed), 1e-7);
  EXPECT_NEAR(2 * error.mass * std::sqrt(128.0), .519036, 1e-6);
  EXPECT_GE(error.bound, error.error);
}

// A sink holds mass, not value: the published bound says 0, the error is .9.
TEST(DestructionErrorTest, ASinkCostsMoreThanThePublishedBound) {
  const testing::Head head(1, {0, 0}, {0, 1});
  const std::vector<float> weights = {.9f, .1f};
  const std::vector<uint8_t> destroyed = {1, 0};

  const DestructionError error =
      ErrorOfDestroying(weights, head.Input(0).values, destroyed);

  EXPECT_NEAR(error.error, .9, 1e-6);
  EXPECT_NEAR(error.bound, .9, 1e-6);
}

TEST(DestructionErrorTest, IsWhatAttendingTwiceGivesAndWithinItsBound) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 50; ++round) {
    RandomHead head(random(), 60, 16, 2);
    const std::vector<float> weights = Weights(head, 60);
    std::vector<uint8_t> destroyed;
    for (int i = 0; i < 60; ++i) destroyed.push_back(random() % 3 == 0);

    const DestructionError error =
        ErrorOfDestroying(weights, head.Input(0).values, destroyed);

    const double measured = MeasuredError(weights, head, 16, destroyed);
    EXPECT_NEAR(error.error, measured, 1e-5 * (1 + measured));
    EXPECT_LE(error.error, error.bound * (1 + 1e-5));
  }
}

TEST(DestructionErrorTest, NothingDestroyedIsNoError) {
  F1 f1;
  const std::vector<uint8_t> none(8);

  const DestructionError error =
      ErrorOfDestroying(Weights(f1, 8), f1.Input(0).values, none);

  EXPECT_EQ(error.mass, 0);
  EXPECT_EQ(error.error, 0);
}

}  // namespace
}  // namespace farkv

// Attention against the oracle in double, and against the fixture of
// ALGORITHMS 0.5 and 1.1.
#include "kernels/attention.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/kernels/attention_case.h"

namespace farkv {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr double kFixedPointOne = 0x1p+40;

// A row scores in the heads where it lives, and the heads make up the whole.
void ExpectHeadScores(const ShapeOptions& options, const CaseSequence& sequence,
                      const CaseResult& result, int first_row) {
  const auto length = static_cast<size_t>(sequence.length());
  const int heads = options.geometry.num_kv_heads;
  for (size_t p = 0; p < length; ++p) {
    double sum = 0;
    for (int h = 0; h < heads; ++h) {
      const int64_t score =
          result.head_scores[0][static_cast<size_t>(h) * length + p];
      sum += static_cast<double>(score);
      const int position = static_cast<int>(p);
      if (position > first_row) continue;  // few queries, or none, see it
      ASSERT_EQ(score > 0, sequence.live(position, h))
          << "position " << p << " head " << h;
    }
    ASSERT_NEAR(sum / heads / options.geometry.num_layers / kFixedPointOne,
                static_cast<double>(result.scores[0][p]) / kFixedPointOne, 1e-7)
        << "position " << p;
  }
}

// Runs the last rows of `length` positions and compares each with the oracle.
void ExpectNearOracle(const ShapeOptions& options, int length, int rows,
                      const LeafKernel& kernel, int chunk) {
  const std::vector<CaseSequence> sequences = {
      CaseSequence(options, length, options.seed)};
  RunOptions run;
  run.first_row = length - rows;
  run.chunk = chunk;
  const CaseResult result = RunCase(sequences, options, kernel, run);
  const size_t row = static_cast<size_t>(sequences[0].query_heads() *
                                         options.geometry.head_dim);
  std::vector<double> scores(static_cast<size_t>(length));
  for (int position = run.first_row; position < length; ++position) {
    const std::vector<double> want =
        sequences[0].Oracle(position, ScaleOf(options.geometry), &scores);
    for (size_t i = 0; i < row; ++i) {
      ASSERT_NEAR(result.out[0][static_cast<size_t>(position) * row + i],
                  want[i], 4e-6)
          << "position " << position << " element " << i;
    }
  }
  for (size_t p = 0; p < scores.size(); ++p) {
    ASSERT_NEAR(static_cast<double>(result.scores[0][p]) / kFixedPointOne,
                scores[p], 1e-6 * rows)
        << "score " << p;
  }
  ExpectHeadScores(options, sequences[0], result, run.first_row);
}

ShapeOptions Shape(DType dtype, int heads, int dim, int group, double dead) {
  ShapeOptions options;
  options.geometry = {
      .num_layers = 3, .num_kv_heads = heads, .head_dim = dim, .dtype = dtype};
  options.group = group;
  options.dead_share = dead;
  options.seed = static_cast<uint64_t>(dim * 100 + group * 10 + heads);
  return options;
}

class AttentionShapeTest : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionShapeTest, EveryHeadDimAgreesWithTheOracle) {
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    for (const int dim : {16, 32, 48, 64, 80, 96, 112, 128, 144, 256, 512}) {
      SCOPED_TRACE(name + " head_dim " + std::to_string(dim));
      ExpectNearOracle(Shape(GetParam(), 2, dim, 3, 0.2), 150, 3, kernel, 2);
    }
  }
}

TEST_P(AttentionShapeTest, EveryGroupSizeAgreesWithTheOracle) {
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    for (const int group : {1, 2, 3, 4, 5, 6, 7, 8, 11, 40}) {
      SCOPED_TRACE(name + " group " + std::to_string(group));
      ExpectNearOracle(Shape(GetParam(), 1, 32, group, 0), 130, 40, kernel, 40);
    }
  }
}

TEST_P(AttentionShapeTest, EveryLengthOfALeafAgreesWithTheOracle) {
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    for (const double dead : {0.0, 0.5}) {
      SCOPED_TRACE(name + " dead share " + std::to_string(dead));
      ExpectNearOracle(Shape(GetParam(), 3, 64, 3, dead), 133, 133, kernel, 1);
    }
  }
}

TEST_P(AttentionShapeTest, EveryHighwayTargetAgreesWithTheOracle) {
  ForEachHighwayTarget([] {
    ExpectNearOracle(Shape(GetParam(), 2, 48, 5, 0.3), 100, 9,
                     HighwayLeafKernel(GetParam()), 5);
  });
}

INSTANTIATE_TEST_SUITE_P(, AttentionShapeTest,
                         ::testing::Values(DType::kBf16, DType::kF32),
                         [](const auto& param) {
                           return std::string(DTypeName(param.param));
                         });

// Fixture F1: one KV head, query heads A and B, two elements; padded to 16.
class FixtureTest : public ::testing::Test {
 protected:
  static constexpr int kDim = 16;
  static constexpr int kTokens = 8;

  FixtureTest() {
    const float keys[kTokens][2] = {{2, 0}, {0, 1}, {1, 1}, {-1, 0},
                                    {1, 1}, {0, 2}, {1, 0}, {0, -1}};
    const float values[kTokens][2] = {{.1f, .1f}, {1, -1},    {.5f, .5f},
                                      {8, -8},    {.5f, .4f}, {-1, 1},
                                      {2, 0},     {0, .3f}};
    const float queries[2][2][2] = {{{1, 0}, {0, 1}}, {{1, 1}, {-1, 1}}};
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t i = 0; i < 2; ++i) {
        keys_[t * kDim + i] = keys[t][i];
        values_[t * kDim + i] = values[t][i];
      }
    }
    for (size_t row = 0; row < 2; ++row) {
      for (size_t h = 0; h < 2; ++h) {
        for (size_t i = 0; i < 2; ++i) {
          queries_[(row * 2 + h) * kDim + i] = queries[row][h][i];
        }
      }
    }
    run_.keys = reinterpret_cast<const std::byte*>(keys_.data());
    run_.values = reinterpret_cast<const std::byte*>(values_.data());
    run_.length = kTokens;
    page_ = {.page_index = 0, .live = &live_, .runs = {&run_, 1}};
    args_.geometry = {.num_layers = 1,
                      .num_kv_heads = 1,
                      .head_dim = kDim,
                      .dtype = DType::kF32};
    args_.num_query_heads = 2;
    args_.scale = 1.0f / std::sqrt(2.0f);
    args_.queries = queries_.data();
    args_.out = out_.data();
  }

  std::vector<float> keys_ = std::vector<float>(kTokens * kDim);
  std::vector<float> values_ = std::vector<float>(kTokens * kDim);
  std::vector<float> queries_ = std::vector<float>(4 * kDim);
  std::vector<float> out_ = std::vector<float>(4 * kDim);
  uint64_t live_ = 0xff;
  farkv::Run run_;
  PageRuns page_;
  AttentionArgs args_;
};

TEST_F(FixtureTest, WeightsAreTheCausalSoftmaxRows) {
  const std::vector<std::vector<float>> want = {
      {.324116f, .078798f, .159812f, .038853f, .159812f, .078798f, .159812f, 0},
      {.075771f, .153673f, .153673f, .075771f, .153673f, .311667f, .075771f, 0},
      {.191355f, .094351f, .191355f, .022938f, .191355f, .191355f, .094351f,
       .022938f},
      {.021328f, .177925f, .087729f, .177925f, .087729f, .360851f, .043256f,
       .043256f}};
  for (size_t row = 0; row < 2; ++row) {
    std::vector<float> m(2), l(2), out(2 * kDim), weights(2 * kPageTokens);
    AttentionLeaf(args_, queries_.data() + row * 2 * kDim,
                  6 + static_cast<int64_t>(row), page_,
                  {m.data(), l.data(), out.data()}, weights.data());
    for (size_t h = 0; h < 2; ++h) {
      const size_t first = h * kPageTokens;
      std::vector<float> softmax(kTokens);
      for (size_t i = 0; i < kTokens; ++i) {
        softmax[i] = weights[first + i] / l[h];
      }
      EXPECT_THAT(softmax, Pointwise(FloatNear(1e-5f), want[row * 2 + h]));
    }
  }
}

TEST_F(FixtureTest, ScoresAfterStepsSixAndSevenAreThePublishedOnes) {
  std::vector<int64_t> scores(kTokens);
  AttentionSequence sequence;
  sequence.num_rows = 2;
  sequence.first_position = 6;
  sequence.pages = {&page_, 1};
  sequence.scores = scores;
  args_.sequences = {&sequence, 1};
  ThreadPool pool(1);
  RunAttention(pool, args_, HighwayLeafKernel(DType::kF32));

  std::vector<float> got;
  for (const int64_t s : scores) {
    got.push_back(static_cast<float>(static_cast<double>(s) / kFixedPointOne));
  }
  EXPECT_THAT(got, Pointwise(FloatNear(1e-5f),
                             {.306286f, .252373f, .296284f, .157744f, .296284f,
                              .471336f, .186595f, .033097f}));
  // Head A at step 7, ALGORITHMS 12.1.
  EXPECT_NEAR(out_[2 * kDim], 0.4856962, 1e-5);
  EXPECT_NEAR(out_[2 * kDim + 1], 0.1117337, 1e-5);
}

}  // namespace
}  // namespace farkv

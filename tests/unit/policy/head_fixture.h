// A head's rows, queries and event for the tests of destroying policies, and
// fixture F1 of ALGORITHMS 0.5. Test only.
#ifndef FARKV_TESTS_UNIT_POLICY_HEAD_FIXTURE_H_
#define FARKV_TESTS_UNIT_POLICY_HEAD_FIXTURE_H_

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "common/base/bf16.h"
#include "common/policy/eviction_input.h"
#include "gmock/gmock.h"

namespace farkv::testing {

// Owns what an EvictionInput borrows.
class Head {
 public:
  Head(int32_t dim, std::vector<float> keys, std::vector<float> values)
      : dim_(dim), keys_(std::move(keys)), values_(std::move(values)) {
    positions.resize(keys_.size() / static_cast<size_t>(dim));
    std::iota(positions.begin(), positions.end(), int64_t{0});
    num_tokens = static_cast<int64_t>(positions.size());
    Point(keys_, key_rows_);
    Point(values_, value_rows_);
  }
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  // `num_heads` query heads with `num_queries` queries each.
  void SetQueries(int32_t num_heads, int32_t num_queries,
                  std::vector<float> data) {
    num_heads_ = num_heads;
    num_queries_ = num_queries;
    queries_ = std::move(data);
  }

  EvictionInput Input(int64_t num_kept) const {
    EvictionInput input;
    input.positions = positions;
    input.num_tokens = num_tokens;
    input.num_kept = num_kept;
    input.pinned = pinned;
    input.keys = {key_rows_, dim_, DType::kF32};
    input.values = {value_rows_, dim_, DType::kF32};
    input.window = {queries_, num_heads_, num_queries_,
                    1.0f / std::sqrt(static_cast<float>(dim_))};
    input.cumulative = cumulative;
    input.draws = draws;
    return input;
  }
  HeadPanels Keys() const { return MakePanels({key_rows_, dim_, DType::kF32}); }
  HeadPanels Values() const {
    return MakePanels({value_rows_, dim_, DType::kF32});
  }
  WindowQueries Window() const { return Input(0).window; }
  float* key(int64_t row) { return keys_.data() + row * dim_; }
  float* value(int64_t row) { return values_.data() + row * dim_; }

  std::vector<int64_t> positions;
  int64_t num_tokens = 0;
  std::vector<uint8_t> pinned;
  std::vector<int64_t> cumulative;
  PolicyDraws draws;

 private:
  void Point(const std::vector<float>& data,
             std::vector<const std::byte*>& rows) {
    AppendRows(reinterpret_cast<const std::byte*>(data.data()),
               static_cast<size_t>(dim_) * sizeof(float),
               static_cast<int64_t>(data.size()) / dim_, rows);
  }

  int32_t dim_;
  std::vector<float> keys_;
  std::vector<float> values_;
  std::vector<const std::byte*> key_rows_;
  std::vector<const std::byte*> value_rows_;
  int32_t num_heads_ = 0;
  int32_t num_queries_ = 0;
  std::vector<float> queries_;
};

// ALGORITHMS 0.5: eight tokens, query heads A and B, queries 6 and 7.
class F1 : public Head {
 public:
  F1()
      : Head(
            2, {2, 0, 0, 1, 1, 1, -1, 0, 1, 1, 0, 2, 1, 0, 0, -1},
            {.1f, .1f, 1, -1, .5f, .5f, 8, -8, .5f, .4f, -1, 1, 2, 0, 0, .3f}) {
    SetQueries(2, 2, {1, 0, 1, 1, 0, 1, -1, 1});
  }
  // One query head alone: 0 is A, 1 is B.
  void Only(int head) {
    SetQueries(1, 2,
               head == 0 ? std::vector<float>{1, 0, 1, 1}
                         : std::vector<float>{0, 1, -1, 1});
  }
};

// `rows` random rows of `dim`, group of two query heads.
inline std::vector<float> RandomFloats(std::mt19937_64& random, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& x : out) x = Bf16ToFloat(FloatToBf16(normal(random)));
  return out;
}

class RandomHead : public Head {
 public:
  RandomHead(uint64_t seed, int64_t rows, int32_t dim, int32_t num_queries)
      : RandomHead(std::mt19937_64(seed), rows, dim, num_queries) {}

 private:
  RandomHead(std::mt19937_64 random, int64_t rows, int32_t dim,
             int32_t num_queries)
      : Head(dim, RandomFloats(random, static_cast<size_t>(rows * dim)),
             RandomFloats(random, static_cast<size_t>(rows * dim))) {
    SetQueries(
        2, num_queries,
        RandomFloats(random, static_cast<size_t>(2 * num_queries * dim)));
    for (int64_t i = 0; i < rows; ++i) {
      cumulative.push_back(static_cast<int64_t>(random() >> 20));
    }
    draws = {.seed = 3, .request = 11, .layer = 2, .kv_head = 1, .event = 5};
  }
};

// To the five or six digits that ALGORITHMS prints.
inline auto Digits(const std::vector<double>& expected,
                   double tolerance = 1e-6) {
  std::vector<::testing::Matcher<float>> each;
  for (const double x : expected) {
    each.push_back(::testing::FloatNear(static_cast<float>(x),
                                        static_cast<float>(tolerance)));
  }
  return ::testing::ElementsAreArray(each);
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_POLICY_HEAD_FIXTURE_H_

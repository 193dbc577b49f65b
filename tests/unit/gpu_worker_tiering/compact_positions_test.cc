// Compact positions in the cache, against attention that is computed here.
#include "gpu_worker/tiering/compact_positions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"

namespace farkv {
namespace {

constexpr int64_t kPrompt = 20, kTotal = 120, kBudget = 50;

std::vector<double> Frequencies(int head_dim) {
  std::vector<double> frequencies;
  for (int i = 0; i < head_dim / 2; ++i) {
    frequencies.push_back(std::pow(10000.0, -2.0 * i / head_dim));
  }
  return frequencies;
}

// A row that attention reads, and by how many positions its key is turned.
struct ReadRow {
  int64_t position = 0;
  int64_t turned_by = 0;
};

class CompactPositionsTest : public ::testing::Test {
 protected:
  // What one query head of a layer has to read at the last step.
  std::vector<double> Expected(int layer, int query_head,
                               const std::vector<ReadRow>& rows) const {
    const auto dim = static_cast<size_t>(geometry_.head_dim);
    const int head = query_head * geometry_.num_kv_heads / kQueryHeads;
    const std::vector<float> query =
        Of(2, layer, kTotal - 1, kQueryHeads, query_head);
    std::vector<double> out(dim);
    double total = 0;
    for (const ReadRow& row : rows) {
      const std::vector<float> key =
          Of(0, layer, row.position, geometry_.num_kv_heads, head);
      const std::vector<float> value =
          Of(1, layer, row.position, geometry_.num_kv_heads, head);
      const double weight = std::exp(0.25 * Product(query, key, row.turned_by));
      total += weight;
      for (size_t c = 0; c < dim; ++c) out[c] += weight * value[c];
    }
    for (double& number : out) number /= total;
    return out;
  }

  // One head of what the harness makes up: keys, values and queries.
  std::vector<float> Of(uint64_t kind, int layer, int64_t position, int heads,
                        int head) const {
    const int dim = geometry_.head_dim;
    const auto all =
        Numbers(3 * id_.value + kind, layer, position, 1, heads * dim);
    return {all.begin() + head * dim, all.begin() + (head + 1) * dim};
  }

  double Product(const std::vector<float>& query, const std::vector<float>& key,
                 int64_t turned_by) const {
    const size_t half = key.size() / 2;
    double product = 0;
    for (size_t c = 0; c < half; ++c) {
      const double angle = static_cast<double>(turned_by) * frequencies_[c];
      const double x = key[c], y = key[c + half];
      product += query[c] * (x * std::cos(angle) - y * std::sin(angle));
      product += query[c + half] * (x * std::sin(angle) + y * std::cos(angle));
    }
    return product;
  }

  const KvGeometry geometry_ = TestGeometry(DType::kF32);
  const std::vector<double> frequencies_ = Frequencies(geometry_.head_dim);
  SequenceId id_;
};

TEST_F(CompactPositionsTest, KeysAreTurnedToTheirPlacesOnBothSidesOfAGap) {
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  const auto stream = device->NewStream();
  TieringOptions options;
  options.granularity = 16;
  options.t0_bytes = uint64_t{1} << 20;
  const auto cache =
      KvCache::Create(options, geometry_, kQueryHeads, *device).value();
  SequenceSpec spec = TestSpec(16, kPrompt, kTotal);
  spec.destruction = DestructionSettings{
      .policy = StreamingLlmPolicy{},
      .budget = {.kind = BudgetKind::kFixed, .tokens = kBudget, .bounds = {}},
      .protect_prompt = false};
  spec.compact_frequencies = frequencies_;
  id_ = cache->Open(spec).value();
  Harness harness(*cache, *stream, geometry_);
  std::vector<int64_t> written_for, live;
  for (int64_t p = 0; p < kTotal; ++p) {
    live = cache->LivePositions(id_);
    written_for.push_back(cache->num_tokens_left(id_));
    ASSERT_TRUE(harness.Step(id_, 1).ok());
  }
  // Four sinks and the youngest, the last one's own row included.
  live.push_back(kTotal - 1);
  ASSERT_EQ(live.size(), static_cast<size_t>(kBudget) + 1);
  ASSERT_EQ(live[3], 3);
  ASSERT_EQ(live[4], kTotal - kBudget + 3);
  std::vector<ReadRow> turned, unturned;
  for (size_t place = 0; place < live.size(); ++place) {
    const int64_t written = written_for[static_cast<size_t>(live[place])];
    turned.push_back({live[place], static_cast<int64_t>(place) - written});
    unturned.push_back({live[place], 0});
  }

  double error = 0, unturned_error = 0;
  for (int layer = 0; layer < geometry_.num_layers; ++layer) {
    const auto& out = harness.outputs().back()[static_cast<size_t>(layer)];
    for (int head = 0; head < kQueryHeads; ++head) {
      const auto expected = Expected(layer, head, turned);
      const auto other = Expected(layer, head, unturned);
      for (size_t c = 0; c < expected.size(); ++c) {
        const double got = out[static_cast<size_t>(head) * expected.size() + c];
        error = std::max(error, std::abs(got - expected[c]));
        unturned_error = std::max(unturned_error, std::abs(got - other[c]));
      }
    }
  }
  EXPECT_LT(error, 1e-5);
  EXPECT_GT(unturned_error, 1e-3);
}

}  // namespace
}  // namespace farkv

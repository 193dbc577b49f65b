#include <stdlib.h>

#include <string>

#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"

namespace farkv {
namespace {

constexpr int64_t kPrompt = 150;
constexpr int64_t kTotal = 420;

struct Case {
  int granularity;
  int num_nodes;
  bool map;
  bool spread;
  bool prompt_in_t0;
  const char* device = "cpu";
  int query_heads = kQueryHeads;  // over two KV heads
};

class ExactnessTest : public ::testing::TestWithParam<Case> {
 protected:
  TieringOptions Options() const {
    TieringOptions options;
    options.granularity = GetParam().granularity;
    options.t0_bytes = uint64_t{1} << 20;
    options.heartbeat = absl::Seconds(5);
    // A slab has a sixth of a lease to be mapped; if it is late, rows are
    // fetched.
    options.lease = absl::Minutes(6);
    options.rpc_timeout = absl::Minutes(2);
    return options;
  }

  SequenceSpec Spec() const {
    SequenceSpec spec = TestSpec(GetParam().granularity, kPrompt, kTotal);
    spec.placement.prompt_in_t0 = GetParam().prompt_in_t0;
    return spec;
  }

  // The whole run; drops become certain because every store is awaited.
  static void Generate(KvCache& cache, SequenceId id, Harness& harness) {
    for (int64_t done = 0; done < kPrompt; done += 50) {
      ASSERT_TRUE(harness.Step(id, 50).ok());
      ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
    }
    for (int64_t i = kPrompt; i < kTotal; ++i) {
      const absl::Status status = harness.Step(id, 1);
      ASSERT_TRUE(status.ok()) << status;
      if (i % 8 != 0) continue;
      ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
    }
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ =
      OpenDevice(GetParam().device, pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
};

TEST_P(ExactnessTest, TiersChangeNoBitOfOutputsAndScores) {
  auto full =
      KvCache::Create(Options(), geometry_, GetParam().query_heads, *device_)
          .value();
  Harness reference(*full, *stream_, geometry_, GetParam().query_heads);
  const SequenceId full_id = full->Open(Spec()).value();
  Generate(*full, full_id, reference);
  char dir_template[] = "/tmp/farkv-map-XXXXXX";
  const std::string map_dir = GetParam().map ? mkdtemp(dir_template) : "";
  LoopbackNetwork network(LoopbackNetwork::Drive::kThread);
  TestNode node0(network, geometry_, "node0", 4096, map_dir);
  TestNode node1(network, geometry_, "node1", 4096, map_dir);
  TieringOptions options = Options();
  options.memory_nodes = {"0", "1"};
  options.memory_nodes.resize(static_cast<size_t>(GetParam().num_nodes));
  options.map_dir = map_dir;
  if (GetParam().map) options.cold = ColdMode::kAuto;
  options.spread = GetParam().spread;
  options.stripe_tokens = 64;

  auto tiered =
      KvCache::CreateWith(options, geometry_, GetParam().query_heads, *device_,
                          AccessTo(network, {&node0, &node1}))
          .value();
  Harness harness(*tiered, *stream_, geometry_, GetParam().query_heads);
  const SequenceId id = tiered->Open(Spec()).value();
  Generate(*tiered, id, harness);

  EXPECT_EQ(harness.outputs(), reference.outputs());
  EXPECT_EQ(tiered->Scores(id), full->Scores(full_id));
  const SequenceTierStats stats = tiered->Stats(id);
  EXPECT_EQ(stats.cold_mode, GetParam().map ? "map" : "prefetch");
  EXPECT_GT(stats.cold_rows_mapped + stats.cold_rows_fetched, 1000);
  EXPECT_GT(stats.t1_tokens, 0);
  // Whole pages may keep their ranks to the end; smaller groups do not.
  if (GetParam().granularity < 64) {
    EXPECT_GT(stats.promoted_tokens, 0);
  }
  EXPECT_EQ(stats.stored_pages, kTotal / kPageTokens);
  if (GetParam().spread) {
    EXPECT_GT(node0.stored_pages(), 0);
    EXPECT_GT(node1.stored_pages(), 0);
  }
  tiered = nullptr;
  EXPECT_EQ(node0.used_pages() + node1.used_pages(), 0);
  if (!map_dir.empty()) {
    EXPECT_EQ(system(("rm -r " + map_dir).c_str()), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, ExactnessTest,
    ::testing::Values(
        Case{64, 1, false, false, true}, Case{16, 1, false, false, true},
        Case{1, 1, false, false, true}, Case{16, 2, false, true, false},
        Case{1, 2, false, true, false}, Case{64, 1, true, false, false},
        Case{1, 1, true, false, true}, Case{16, 2, true, true, false},
        Case{16, 1, false, false, true, "fake"},
        Case{64, 1, true, false, false, "fake"},
        Case{16, 1, false, false, true, "cpu", 2},
        Case{16, 1, true, false, true, "cpu", 6},
        Case{16, 2, false, true, false, "cpu", 14},
        Case{1, 1, true, false, true, "cpu", 14}),
    [](const ::testing::TestParamInfo<Case>& given) {
      const Case& c = given.param;
      return "Granularity" + std::to_string(c.granularity) +
             (c.map ? "Mapped" : "Fetched") + (c.spread ? "Spread" : "") +
             (c.prompt_in_t0 ? "" : "PromptAnywhere") + "Group" +
             std::to_string(c.query_heads / 2) + "On" + c.device;
    });

}  // namespace
}  // namespace farkv

// A KvCache over nodes inside the test, or without any.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_TIERING_KV_CACHE_FIXTURE_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_TIERING_KV_CACHE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/thread_pool.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"

namespace farkv {

inline constexpr absl::Duration kLong = absl::Seconds(20);

class KvCacheTest : public ::testing::Test {
 protected:
  static TieringOptions Options() {
    TieringOptions options;
    options.granularity = 16;
    options.t0_bytes = uint64_t{1} << 20;
    // A busy machine may keep a node from answering for a while; only tests of
    // lost nodes want to know soon.
    options.heartbeat = absl::Seconds(5);
    options.rpc_timeout = absl::Seconds(5);
    return options;
  }

  // A cache over `nodes`; none: the full cache.
  std::unique_ptr<KvCache> Make(TieringOptions options,
                                std::vector<TestNode*> nodes) {
    options.memory_nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      options.memory_nodes.push_back(std::to_string(i));
    }
    return KvCache::CreateWith(options, geometry_, kQueryHeads, *device_,
                               AccessTo(network_, std::move(nodes)))
        .value();
  }

  // A sequence of `tokens` with cold rows, all stores done.
  SequenceId MakeCold(KvCache& cache, Harness& harness, int tokens,
                      const char* name = "request") {
    const SequenceId id =
        cache.Open(TestSpec(16, 20, tokens + 100, name)).value();
    EXPECT_TRUE(harness.Step(id, 20).ok());
    for (int i = 20; i < tokens; ++i) {
      EXPECT_TRUE(harness.Step(id, 1).ok());
      EXPECT_TRUE(cache.Drain(kLong).ok());
    }
    EXPECT_GT(cache.Stats(id).t1_tokens, 0);
    return id;
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_TIERING_KV_CACHE_FIXTURE_H_

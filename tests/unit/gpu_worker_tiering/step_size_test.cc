// A step that would fetch more of one layer from a node than fits is refused
// before it asks for anything, unless rows are lost or can be had otherwise.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/page/bodies.h"
#include "gmock/gmock.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "kv_cache_fixture.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class StepSizeTest : public KvCacheTest {
 protected:
  // Rows of `tokens` in one layer.
  uint64_t LayerBytes(size_t tokens) const {
    return geometry_.BlockBytes(tokens);
  }

  // One step over them, which must be refused: the reason.
  std::string Refusal(KvCache& cache, std::vector<StepRows> rows) {
    const int64_t tokens = cache.num_tokens(rows.front().sequence);
    // What parked sequences asked for before may still be on its way.
    const absl::Time end = absl::Now() + kLong;
    while (cache.staging_bytes() > 0 && absl::Now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(cache.staging_bytes(), 0);
    const int fetched = node_.fetched_pages();
    const absl::Status status = cache.Begin(rows, *stream_);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_EQ(node_.fetched_pages(), fetched);
    EXPECT_EQ(cache.num_tokens(rows.front().sequence), tokens);
    return std::string(status.message());
  }

  TestNode node_{network_, geometry_, "node"};
};

TEST_F(StepSizeTest, SequencesThatAreTooLargeTogetherCanRunApart) {
  TieringOptions options = Options();
  options.max_layer_fetch_bytes = LayerBytes(200);
  auto cache = Make(options, {&node_});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId first = MakeCold(*cache, harness, 200, "first");
  const SequenceId second = MakeCold(*cache, harness, 200, "second");
  cache->Park(first);
  cache->Park(second);
  ASSERT_EQ(cache->Stats(first).t1_tokens, 192);
  ASSERT_EQ(cache->Stats(second).t1_tokens, 192);

  const std::string why = Refusal(*cache, {{first, 1}, {second, 1}});

  EXPECT_THAT(why, HasSubstr("2 sequences would fetch 48KiB of one layer from "
                             "node node"));
  EXPECT_TRUE(harness.Step(first, 1).ok());
  EXPECT_TRUE(harness.Step(second, 1).ok());
  EXPECT_GT(node_.fetched_pages(), 0);
}

TEST_F(StepSizeTest, ASequenceThatIsTooLargeAloneIsNamed) {
  TieringOptions options = Options();
  options.max_layer_fetch_bytes = LayerBytes(100);
  auto cache = Make(options, {&node_});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId large = MakeCold(*cache, harness, 160, "large");
  const SequenceId small = cache->Open(TestSpec(16, 20, 100, "small")).value();
  ASSERT_TRUE(harness.Step(small, 20).ok());
  cache->Park(large);
  ASSERT_EQ(cache->Stats(large).t1_tokens, 128);

  const std::string why = Refusal(*cache, {{small, 1}, {large, 1}});

  EXPECT_THAT(why, HasSubstr("sequence large would fetch 16KiB of one layer "
                             "from node node"));
  EXPECT_TRUE(harness.Step(small, 1).ok());
}

TEST_F(StepSizeTest, WhatARequestHasInStagingIsItsOwn) {
  auto cache = Make(Options(), {&node_});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId large = MakeCold(*cache, harness, 300, "large");
  const SequenceId small = MakeCold(*cache, harness, 100, "small");
  cache->Park(large);
  cache->Park(small);
  ASSERT_EQ(cache->Stats(small).t1_tokens, 64);

  ASSERT_TRUE(harness.Step({{large, 1}, {small, 1}}).ok());

  EXPECT_LE(cache->Stats(small).staging_peak_bytes,
            static_cast<int64_t>(3 * LayerBytes(64)));
  EXPECT_GT(cache->Stats(small).staging_peak_bytes, 0);
  EXPECT_GT(cache->Stats(large).staging_peak_bytes,
            static_cast<int64_t>(3 * LayerBytes(64)));
}

class TooManyRowsTest : public StepSizeTest {
 protected:
  // Returns when the link has given up the node.
  static void AwaitLoss(KvCache& cache) {
    const absl::Time end = absl::Now() + kLong;
    while (cache.Peers()[0].healthy) ASSERT_LT(absl::Now(), end);
  }

  // Of a step over `id`, which is not run.
  absl::Status Begin(KvCache& cache, SequenceId id) {
    const StepRows rows[] = {{id, 1}};
    const absl::Status status = cache.Begin(rows, *stream_);
    cache.Discard();
    return status;
  }

  static void ExpectLost(KvCache& cache, SequenceId id,
                         const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(cache.failed_sequences(), std::vector<SequenceId>{id});
  }
};

TEST_F(TooManyRowsTest, MappedOnesThatAreLostAreRecomputedAndNotRefused) {
  char name[] = "/tmp/farkv-map-XXXXXX";
  const std::string map_dir = mkdtemp(name);
  {
    TestNode node(network_, geometry_, "mapped", 4096, map_dir);
    TieringOptions options = Options();
    options.cold = ColdMode::kMap;
    options.map_dir = map_dir;
    options.heartbeat = absl::Milliseconds(500);
    options.max_layer_fetch_bytes = LayerBytes(60);
    auto cache = Make(options, {&node});
    Harness harness(*cache, *stream_, geometry_);
    const SequenceId id = MakeCold(*cache, harness, 160);
    cache->Park(id);
    ASSERT_EQ(cache->Stats(id).t1_tokens, 128);
    ASSERT_TRUE(harness.Step(id, 1).ok());

    const Epoch before = cache->Peers()[0].epoch;
    node.Restart();
    const absl::Time end = absl::Now() + kLong;
    while (cache->Peers()[0].epoch == before) ASSERT_LT(absl::Now(), end);

    // Until the cache is told of the lost session its rows seem to be there.
    absl::Status status;
    while (status.ok() && absl::Now() < end) status = Begin(*cache, id);
    ExpectLost(*cache, id, status);
  }
  rmdir(map_dir.c_str());
}

TEST_F(TooManyRowsTest, TheNodeThatFailedIsAskedAgainAndItsLossIsALoss) {
  TieringOptions options = Options();
  options.cold = ColdMode::kPushdown;  // but this node does not attend
  options.max_layer_fetch_bytes = LayerBytes(100);
  options.memory_nodes = {"0"};
  const ManualClock clock;  // the pause of a node that failed has no end
  NodeAccess access = AccessTo(network_, {&node_});
  access.clock = &clock;
  auto cache =
      KvCache::CreateWith(options, geometry_, kQueryHeads, *device_, access)
          .value();
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  absl::Status status = harness.Step(id, 20);
  int aborted = 0;
  while (status.ok() && cache->num_tokens(id) < 300) {
    ASSERT_TRUE(cache->Drain(kLong).ok());
    status = harness.Step(id, 1);
    if (absl::IsAborted(status) && ++aborted == 1) status = harness.Step(id, 1);
  }
  EXPECT_GT(cache->Stats(id).cold_rows_fetched, 0);
  ASSERT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_EQ(aborted, 2);

  node_.SetDown(true);
  AwaitLoss(*cache);

  ExpectLost(*cache, id, Begin(*cache, id));
}

// A device apart from the host whose memory can run out.
class FullDevice final : public Device {
 public:
  explicit FullDevice(Device& inner) : inner_(inner) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override {
    if (full) return absl::ResourceExhaustedError("no memory");
    return inner_.Allocate(bytes);
  }
  std::unique_ptr<Stream> NewStream() override { return inner_.NewStream(); }

  bool full = false;

 private:
  Device& inner_;
};

TEST_F(StepSizeTest, ADeviceWithoutMemoryIsNotTakenForAFullT0) {
  FullDevice device(*device_);
  TieringOptions options = Options();
  options.memory_nodes = {"0"};
  auto cache = KvCache::CreateWith(options, geometry_, kQueryHeads, device,
                                   AccessTo(network_, {&node_}))
                   .value();
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = MakeCold(*cache, harness, 200);
  ASSERT_TRUE(harness.Step(id, 1).ok());
  device.full = true;

  const absl::Status status = harness.Step(id, 1);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("of fetched rows, layer 0, page "));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("a lower --t0-bytes, now 1MiB, leaves more: no memory"));
  device.full = false;
  EXPECT_TRUE(harness.Step(id, 1).ok());
}

// Bytes of a fetch reply with `rows` rows of each of its pages, for each byte
// of these rows; of one KV head, where what is beside them weighs most.
double ReplyPerRowByte(int head_dim, int rows) {
  FetchReply reply;
  reply.geometry = {.num_layers = 0,
                    .num_kv_heads = 1,
                    .head_dim = head_dim,
                    .dtype = DType::kBf16};
  reply.items.resize(1000);
  for (size_t i = 0; i < reply.items.size(); ++i) {
    FetchReplyItem& item = reply.items[i];
    item.page_index = static_cast<int32_t>(i);
    item.rows = {(uint64_t{1} << rows) - 1};
    item.row_crcs.resize(static_cast<size_t>(rows));
  }
  const size_t row_bytes =
      reply.items.size() * reply.geometry.BlockBytes(static_cast<size_t>(rows));
  const size_t beside = EncodeFetchReply(reply).value().size();
  return static_cast<double>(beside + row_bytes) /
         static_cast<double>(row_bytes);
}

TEST(TransportRoomTest, ALayerAndWhatIsFetchedBesideItFit) {
  TieringOptions options;
  const double room = static_cast<double>(options.MaxIncomingBytes());

  for (const auto& [head_dim, rows] : {std::pair{16, 4}, std::pair{64, 1}}) {
    EXPECT_GE(room, ReplyPerRowByte(head_dim, rows) *
                        static_cast<double>(options.max_layer_fetch_bytes +
                                            options.staging_bytes))
        << head_dim;
  }
}

TEST(TransportRoomTest, WhatNoMachineHasRoomForIsRefused) {
  TieringOptions options;
  options.max_layer_fetch_bytes = uint64_t{1} << 63;
  EXPECT_THAT(std::string(options.Validate().message()),
              HasSubstr("max_layer_fetch_bytes is 9223372036854775808"));
  options.max_layer_fetch_bytes = 1;
  options.staging_bytes = uint64_t{1} << 63;
  EXPECT_THAT(std::string(options.Validate().message()),
              HasSubstr("staging_bytes is 9223372036854775808"));
}

}  // namespace
}  // namespace farkv

// --cold=auto over a link whose speed a test sets: the mode follows it, and no
// bit of outputs and scores does.
//
// The link's time is a clock of the test, which each answer moves by its size.
// Real time only makes real what the worker computes, and that is nothing
// beside what the link takes.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "test_node.h"
#include "tests/testing/in_process_node.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr int64_t kPrompt = 150;
constexpr int64_t kTotal = 8000;
constexpr absl::Duration kRoundTrip = absl::Seconds(1);
constexpr double kFast = 1e12;  // bytes per second
constexpr double kSlow = 1e3;

// A transport on whose clock answers take time.
class TimedLink final : public Transport {
 public:
  TimedLink(std::unique_ptr<Transport> inner, ManualClock& clock,
            const std::atomic<double>& rate)
      : inner_(std::move(inner)), clock_(clock), rate_(rate) {}
  ~TimedLink() override { inner_->Shutdown(absl::ZeroDuration()); }

  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    return inner_->Submit(
        peer, std::move(request),
        [this, callback =
                   std::move(callback)](absl::StatusOr<Message> reply) mutable {
          if (reply.ok()) {
            const auto bytes = static_cast<double>(reply->body.size());
            clock_.Advance(kRoundTrip + absl::Seconds(bytes / rate_.load()));
          }
          std::move(callback)(std::move(reply));
        });
  }
  absl::StatusOr<uint16_t> Listen(const std::string& host,
                                  uint16_t port) override {
    return inner_->Listen(host, port);
  }
  absl::StatusOr<PeerId> Connect(const std::string& host,
                                 uint16_t port) override {
    return inner_->Connect(host, port);
  }
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body) override {
    return inner_->Reply(peer, header, std::move(body));
  }
  void Cancel(OperationId operation) override { inner_->Cancel(operation); }
  void ClosePeer(PeerId peer) override { inner_->ClosePeer(peer); }
  void Shutdown(absl::Duration grace) override { inner_->Shutdown(grace); }
  TransportCapabilities capabilities() const override {
    return inner_->capabilities();
  }
  TransportCounters counters() const override { return inner_->counters(); }

 private:
  const std::unique_ptr<Transport> inner_;
  ManualClock& clock_;
  const std::atomic<double>& rate_;
};

class AutoTest : public ::testing::Test {
 protected:
  AutoTest()
      : device_(OpenDevice("cpu", pool_).value()),
        stream_(device_->NewStream()),
        node_(
            StartInProcessNode(InProcessNodeOptions("n0"), &network_).value()) {
    options_.granularity = 16;
    options_.t0_bytes = uint64_t{4} << 20;
    // Short enough that a change of the link is soon looked into, and long
    // enough that a busy machine loses no node.
    options_.heartbeat = absl::Milliseconds(800);
    options_.lease = absl::Minutes(10);
    full_ = KvCache::Create(options_, geometry_, kQueryHeads, *device_).value();
    full_harness_ = std::make_unique<Harness>(*full_, *stream_, geometry_);
    full_id_ = full_->Open(Spec()).value();
    options_.memory_nodes = {"127.0.0.1:" +
                             std::to_string(node_->ports().listen)};
    options_.cold = ColdMode::kAuto;
  }

  static SequenceSpec Spec() { return TestSpec(16, kPrompt, kTotal); }

  // Of sequences that lose rows, in the cache without nodes and in the other.
  void StartDestroying(const char* policy) {
    SequenceSpec spec = Spec();
    DestructionSettings settings;
    settings.policy = **ParseDestructionPolicy(policy);
    settings.budget.kind = BudgetKind::kBounds;
    settings.budget.bounds = {.per_event_ratio = 100, .cumulative_cap = 6000};
    spec.destruction = settings;
    TieringOptions without_nodes = options_;
    without_nodes.memory_nodes.clear();
    without_nodes.cold = ColdMode::kPrefetch;
    full_harness_.reset();
    full_ = KvCache::Create(without_nodes, geometry_, kQueryHeads, *device_)
                .value();
    full_harness_ = std::make_unique<Harness>(*full_, *stream_, geometry_);
    full_id_ = full_->Open(spec).value();
    spec_ = spec;
    Start();
  }

  void Start() {
    NodeAccess access = MakeNodeAccess(options_);
    access.clock = &clock_;
    access.transport = [this](TransportOptions transport)
        -> absl::StatusOr<std::unique_ptr<Transport>> {
      return std::make_unique<TimedLink>(
          network_.CreateTransport(std::move(transport)), clock_, rate_);
    };
    cache_ =
        KvCache::CreateWith(options_, geometry_, kQueryHeads, *device_, access)
            .value();
    harness_ = std::make_unique<Harness>(*cache_, *stream_, geometry_);
    id_ = cache_->Open(spec_).value();
    for (int64_t done = 0; done < kPrompt; done += 50) Both(50);
    // Until a plan has left rows to the node.
    while (cache_->Stats(id_).t1_tokens < 200) {
      ASSERT_LT(cache_->num_tokens(id_), kTotal);
      Both(1);
      ASSERT_TRUE(cache_->Drain(absl::Seconds(20)).ok());
    }
  }

  // One step of both caches. A step that is discarded is repeated.
  void Both(int rows) {
    ASSERT_TRUE(full_harness_->Step(full_id_, rows).ok());
    absl::Status status = harness_->Step(id_, rows);
    for (int tries = 1; absl::IsAborted(status) && tries < 5; ++tries) {
      status = harness_->Step(id_, rows);
    }
    ASSERT_TRUE(status.ok()) << status;
  }

  // Steps until they are read by `mode` because of the rates. Time passes for
  // the link, so that it is probed.
  void StepUntil(const std::string& mode) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    PeerStats peer;
    while (peer.cold_mode != mode || peer.cold_reason != "rates") {
      ASSERT_LT(absl::Now(), end)
          << peer.cold_mode << " by " << peer.cold_reason << ", link "
          << peer.link_bytes_per_second << ", round trip " << peer.round_trip;
      ASSERT_LT(cache_->num_tokens(id_), kTotal);
      clock_.Advance(absl::Seconds(1));
      Both(1);
      peer = cache_->Peers().front();
    }
  }

  const KvGeometry geometry_ = TestGeometry();
  ManualClock clock_;
  std::atomic<double> rate_{kFast};
  ThreadPool pool_{1};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  std::unique_ptr<Node> node_;
  TieringOptions options_;
  SequenceSpec spec_ = Spec();
  std::unique_ptr<KvCache> full_, cache_;
  std::unique_ptr<Harness> full_harness_, harness_;
  SequenceId full_id_, id_;
};

TEST_F(AutoTest, ASlowLinkPushesDownAndAFastOneFetchesAndNoBitChanges) {
  Start();
  StepUntil("prefetch");
  const SequenceTierStats fetched = cache_->Stats(id_);
  EXPECT_GT(fetched.cold_rows_fetched, 0);

  rate_ = kSlow;
  StepUntil("pushdown");
  for (int i = 0; i < 20; ++i) Both(1);
  const SequenceTierStats pushed = cache_->Stats(id_);
  EXPECT_GT(pushed.cold_rows_pushed_down, fetched.cold_rows_pushed_down);
  EXPECT_EQ(cache_->Peers().front().cold_mode, "pushdown");

  rate_ = kFast;
  StepUntil("prefetch");
  for (int i = 0; i < 20; ++i) Both(1);
  EXPECT_GT(cache_->Stats(id_).cold_rows_fetched, pushed.cold_rows_fetched);

  EXPECT_EQ(harness_->outputs(), full_harness_->outputs());
  EXPECT_EQ(cache_->Scores(id_), full_->Scores(full_id_));
  EXPECT_EQ(cache_->Stats(id_).lost_score_collections, 0);
}

// An event is ranked as the step before it was read.
TEST_F(AutoTest, NodesRankTheRowsOfAnEventWhileTheyAttend) {
  options_.fetch_timeout = absl::Hours(1);  // no event is late on a slow link
  StartDestroying("vase-dkv");
  int by_mode[2] = {0, 0};  // events: fetching, pushing
  const auto step_over_events = [&](int count, bool pushes) {
    while (by_mode[pushes] < count) {
      ASSERT_LT(cache_->num_tokens(id_), kTotal);
      const SequenceTierStats before = cache_->Stats(id_);
      Both(1);
      const SequenceTierStats after = cache_->Stats(id_);
      if (after.evictions == before.evictions) continue;
      const bool pushed = cache_->Peers().front().cold_mode == "pushdown";
      ++by_mode[pushed];
      EXPECT_EQ(after.node_evictions > before.node_evictions, pushed);
    }
  };
  StepUntil("prefetch");
  step_over_events(2, /*pushes=*/false);

  rate_ = kSlow;
  StepUntil("pushdown");
  step_over_events(2, /*pushes=*/true);

  EXPECT_EQ(cache_->Stats(id_).postponed_evictions, 0);
  EXPECT_TRUE(cache_->Evictions(id_) == full_->Evictions(full_id_));
  EXPECT_TRUE(harness_->outputs() == full_harness_->outputs());
}

}  // namespace
}  // namespace farkv

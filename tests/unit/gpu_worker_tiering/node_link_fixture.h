// A link to a TestNode over the loopback, whose calls and answers a test may
// change.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_TIERING_NODE_LINK_FIXTURE_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_TIERING_NODE_LINK_FIXTURE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/async/thread_executor.h"
#include "gpu_worker/tiering/node_link.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"
#include "tests/testing/manual_clock.h"

namespace farkv {

inline constexpr absl::Duration kLong = absl::Seconds(20);

// A transport on which the first `damaged` answers to a hello lose a bit.
class DamagedHello final : public Transport {
 public:
  DamagedHello(std::unique_ptr<Transport> inner, int damaged)
      : inner_(std::move(inner)), damaged_(damaged) {}
  ~DamagedHello() override { inner_->Shutdown(absl::ZeroDuration()); }

  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    if (request.header.type != MessageType::kHelloRequest || damaged_ == 0) {
      return inner_->Submit(peer, std::move(request), std::move(callback));
    }
    --damaged_;
    return inner_->Submit(peer, std::move(request),
                          [callback = std::move(callback)](
                              absl::StatusOr<Message> reply) mutable {
                            if (reply.ok())
                              reply->header_bytes.back() ^= std::byte{1};
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
  int damaged_;  // the thread that connects
};

class NodeLinkTest : public ::testing::Test {
 protected:
  ~NodeLinkTest() override {
    if (link_ != nullptr) link_->Stop();
  }

  // No stall of a test loses the node.
  static TieringOptions RareHeartbeats() {
    TieringOptions options;
    options.heartbeat = absl::Seconds(5);
    return options;
  }

  // `edit` puts itself between the link and the node's control plane.
  absl::Status Connect(const std::function<void(ControlCalls&)>& edit) {
    NodeLinkOptions options;
    options.address = "0";
    options.tiering = tiering_;
    options.geometry = geometry_;
    options.executor = &executor_;
    options.inbox = &inbox_;
    options.clock = clock_;
    options.repeat_pause = repeat_pause_;
    NodeAccess access = AccessTo(network_, {&node_});
    access.control =
        [this, edit](const std::string&) -> absl::StatusOr<ControlCalls> {
      ControlCalls calls = node_.Control();
      edit(calls);
      return calls;
    };
    access.transport = [this, make = access.transport](TransportOptions made)
        -> absl::StatusOr<std::unique_ptr<Transport>> {
      made.clock = transport_clock_;
      made.max_peers = max_peers_;
      return std::make_unique<DamagedHello>(make(std::move(made)).value(),
                                            damaged_hellos_);
    };
    absl::StatusOr<std::unique_ptr<NodeLink>> link =
        NodeLink::Connect(std::move(options), access);
    if (link.ok()) link_ = *std::move(link);
    return link.status();
  }

  // The next event of kind T; others before it are dropped.
  template <typename T>
  T Next() {
    for (;;) {
      while (!events_.empty()) {
        TierEvent event = std::move(events_.front());
        events_.erase(events_.begin());
        if (T* wanted = std::get_if<T>(&event)) return std::move(*wanted);
      }
      if (!inbox_.Wait(kLong)) {
        ADD_FAILURE() << "no event came";
        return T();
      }
      events_ = inbox_.TakeAll();
    }
  }

  std::shared_ptr<RemoteSession> OpenSession(uint64_t sequence = 1) {
    link_->OpenSession(SequenceId{sequence}, SessionId::Random());
    return Next<SessionReady>().session.value();
  }

  const KvGeometry geometry_ = TestGeometry();
  TieringOptions tiering_ = RareHeartbeats();
  absl::Duration repeat_pause_ = absl::Milliseconds(500);
  int damaged_hellos_ = 0;
  const Clock* clock_ = &Clock::Boottime();
  const Clock* transport_clock_ = &Clock::Boottime();
  int max_peers_ = 16;
  ManualClock time_;  // for tests that put it there
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode node_{network_, geometry_, "node"};
  Inbox inbox_;
  std::vector<TierEvent> events_;
  std::unique_ptr<NodeLink> link_;
  // Ends before the link: callbacks that it still runs refer to it.
  ThreadExecutor executor_{1};
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_TIERING_NODE_LINK_FIXTURE_H_

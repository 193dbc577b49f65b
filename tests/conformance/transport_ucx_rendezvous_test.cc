// A sender that ends or falls silent in the middle of a large body: who has the
// receiver's buffer, and until when. The sender is this program again, driving
// UCX by hand, so that it stops exactly where a test wants it.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/transport/ucx/endpoints.h"
#include "common/transport/ucx/message_receiver.h"
#include "common/transport/ucx/message_sender.h"
#include "common/transport/ucx/ucx_transport.h"
#include "common/transport/ucx/ucx_worker.h"
#include "gtest/gtest.h"
#include "tests/conformance/transport_child.h"
#include "tests/conformance/transport_fixture.h"

namespace farkv {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
// More than the sockets between two processes hold.
constexpr size_t kPulledBytes = size_t{32} << 20;

Request SmallRequest(absl::Duration timeout) {
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.timeout = timeout;
  request.body.push_back(BufferLease::Owning(RandomBytes(100, 1)));
  return request;
}

// ---- The child.

class HandDrivenPeer {
 public:
  HandDrivenPeer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    EXPECT_TRUE(receiver_.Start().ok());
  }
  uint16_t Listen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    return endpoints_.Listen(ResolveAddress(kLoopback, 0).value()).value();
  }
  PeerId Connect(uint16_t port) ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    return endpoints_.Connect(ResolveAddress(kLoopback, port).value(), "server")
        .value();
  }
  OperationTable& table() { return *table_; }
  bool sending() const { return sender_.in_flight() > 0; }

  // All that an engine does in a round. True, and back at once, when a large
  // body has been offered to its receiver.
  bool Round() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    endpoints_.AcceptPending();
    for (PeerId peer : table_->TakeClosing()) endpoints_.Close(peer);
    bool large = false;
    for (const auto& message : table_->TakeQueued()) {
      sender_.Post(message);
      large |= !message.body.empty() && message.body[0].size() == kPulledBytes;
    }
    if (large) return true;
    if (!Progress()) worker_->Sleep(absl::Milliseconds(1));
    sender_.DeliverFinished();
    receiver_.DeliverArrived();
    endpoints_.PollClosing();
    return false;
  }
  bool Progress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    return worker_->Progress();
  }

 private:
  // Every request is answered by a large body.
  TransportOptions Options() {
    TransportOptions options;
    options.executor = &executor_;
    options.on_request = [this](Incoming incoming) {
      MessageHeader header = incoming.message.header;
      header.type = MessageType::kFetchReply;
      std::vector<BufferLease> body;
      body.push_back(BufferLease::Owning(RandomBytes(kPulledBytes, 7)));
      EXPECT_TRUE(table_->Reply(incoming.peer, header, std::move(body)).ok());
    };
    return options;
  }

  ThreadExecutor executor_{1};
  const std::shared_ptr<OperationTable> table_ =
      OperationTable::Create(Options(), [] {});
  const std::unique_ptr<UcxWorker> worker_ =
      UcxWorker::Create(UcxOptions(), true).value();
  Endpoints endpoints_{worker_->get(), table_.get(), Clock::Boottime()};
  MessageSender sender_{table_.get(), &endpoints_, 1100};
  MessageReceiver receiver_{worker_->get(), table_.get(), &endpoints_,
                            std::make_shared<ReceiveBuffers>(0)};
};

// Goes on, up to the end of the body, as soon as it is told to.
[[noreturn]] void SendInPart(HandDrivenPeer& peer, int rounds)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
  while (!peer.Round()) {
  }
  Tell(1);  // the body is offered, nothing of it sent
  AwaitGo();
  while (rounds > 0) rounds -= peer.Progress() ? 1 : 0;
  Tell(2);  // it is sent in part, if there were rounds
  AwaitGo();
  while (peer.sending()) peer.Round();
  Tell(3);  // it cannot be sent any further
  for (;;) AwaitGo();
}

}  // namespace

void ReplyInPart(int rounds) {
  engine_thread.Enter();
  HandDrivenPeer peer;
  Tell(peer.Listen());
  SendInPart(peer, rounds);
}

void RequestInPart(uint16_t port) {
  engine_thread.Enter();
  HandDrivenPeer peer;
  const PeerId server = peer.Connect(port);
  std::atomic<bool> connected{false};
  EXPECT_TRUE(peer.table()
                  .Submit(server, SmallRequest(absl::Minutes(10)),
                          [&](auto) { connected = true; })
                  .ok());
  while (!connected) peer.Round();
  Request large = SmallRequest(absl::Minutes(10));
  large.body[0] = BufferLease::Owning(RandomBytes(kPulledBytes, 7));
  EXPECT_TRUE(peer.table().Submit(server, std::move(large), [](auto) {}).ok());
  SendInPart(peer, 3);
}

namespace {

// ---- The receiver.

// There is memory for one large body and no more: the next one shows that its
// buffer came back. `rounds`: how far the sender gets with its body.
class UcxRendezvousTest : public ::testing::TestWithParam<int> {
 protected:
  UcxRendezvousTest() {
    ucx_.max_incoming_bytes = kPulledBytes;
    TransportOptions options;
    options.executor = &executor_;
    client_ = CreateUcxTransport(std::move(options), ucx_).value();
  }
  // A reply is under way, and its sender goes no further.
  void ReceiveInPart() {
    peer_ =
        client_->Connect(kLoopback, static_cast<uint16_t>(sender_.ReadNumber()))
            .value();
    operation_ =
        client_
            ->Submit(peer_, SmallRequest(absl::Minutes(10)), results_.Expect())
            .value();
    ASSERT_EQ(sender_.ReadNumber(), 1u);
    ASSERT_TRUE(Eventually([&] { return BufferBytes() == kPulledBytes; }));
    sender_.Go();
    ASSERT_EQ(sender_.ReadNumber(), 2u);
    EXPECT_EQ(results_.size(), 0u);
  }
  size_t BufferBytes() const {
    return client_->counters().receive_buffer_bytes;
  }
  // What an honest server sends, which takes all the memory there is.
  Message ReceiveWhole() {
    const PeerId server =
        client_->Connect(kLoopback, static_cast<uint16_t>(server_.ReadNumber()))
            .value();
    Request request = SmallRequest(kPatience);
    request.body[0] = BufferLease::Owning(RandomBytes(kPulledBytes, 3));
    EXPECT_TRUE(
        client_->Submit(server, std::move(request), results_.Expect()).ok());
    absl::StatusOr<Message> reply = std::move(results_.Wait(1)[0]);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : Message();
  }
  void ExpectNothingOwed() {
    EXPECT_TRUE(Eventually([&] { return BufferBytes() == 0; }));
    EXPECT_TRUE(
        Eventually([&] { return client_->counters().open_operations == 0; }));
    const TransportCounters counters = client_->counters();
    EXPECT_EQ(counters.completed, counters.submitted);
    EXPECT_EQ(results_.size(), 0u);
  }

  // Before the client has sockets that they would inherit.
  Child sender_{"half-reply", GetParam()};
  Child server_{"serve", 0};
  UcxOptions ucx_;
  Results results_;
  ThreadExecutor executor_{2};
  std::unique_ptr<Transport> client_;
  PeerId peer_;
  OperationId operation_;
};

INSTANTIATE_TEST_SUITE_P(Rounds, UcxRendezvousTest, ::testing::Values(0, 3));

TEST_P(UcxRendezvousTest, AKilledSenderEndsTheOperationAndReturnsTheBuffer) {
  ReceiveInPart();

  sender_.Signal(SIGKILL);

  const absl::Status status = results_.Wait(1)[0].status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  ExpectNothingOwed();
  ReceiveWhole();
  ExpectNothingOwed();
}

// Until the connection is closed UCX may write to the buffer, so it stays lent;
// afterwards nothing may, not even a sender that wakes up again.
TEST_P(UcxRendezvousTest, ASilentSenderHasTheBufferUntilItsConnectionIsClosed) {
  ReceiveInPart();

  client_->Cancel(operation_);

  EXPECT_EQ(results_.Wait(1)[0].status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(BufferBytes(), kPulledBytes);
  client_->ClosePeer(peer_);
  ExpectNothingOwed();
  Message other = ReceiveWhole();
  sender_.Go();
  ASSERT_EQ(sender_.ReadNumber(), 3u);
  const auto expected = RandomBytes(kPulledBytes, 3);
  const std::span<const std::byte> bytes = other.body.bytes();
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()));
  other = Message();
  ExpectNothingOwed();
}

TEST_P(UcxRendezvousTest, ATransportEndsWhileASilentSenderHasABuffer) {
  ReceiveInPart();
  const absl::Time start = absl::Now();

  client_ = nullptr;

  EXPECT_EQ(results_.Wait(1)[0].status().code(),
            absl::StatusCode::kUnavailable);
  // Less than it waits for what never becomes final.
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(UcxRendezvousRequestTest, AKilledClientReturnsTheBufferOfItsRequest) {
  ThreadExecutor executor(2);
  TestServer server;
  UcxOptions ucx;
  ucx.max_incoming_bytes = kPulledBytes;
  const auto transport =
      CreateUcxTransport(server.Options(&executor), ucx).value();
  server.set_transport(transport.get());
  const uint16_t port = transport->Listen(kLoopback, 0).value();
  Child client("half-request", port);
  ASSERT_EQ(client.ReadNumber(), 1u);
  const auto buffer_bytes = [&] {
    return transport->counters().receive_buffer_bytes;
  };
  ASSERT_TRUE(Eventually([&] { return buffer_bytes() == kPulledBytes; }));
  client.Go();
  ASSERT_EQ(client.ReadNumber(), 2u);
  EXPECT_EQ(buffer_bytes(), kPulledBytes);

  client.Signal(SIGKILL);

  EXPECT_TRUE(Eventually([&] { return server.lost() == 1; }));
  EXPECT_TRUE(Eventually([&] { return buffer_bytes() == 0; }));
  EXPECT_EQ(transport->counters().requests_received, 1u);  // the small one
  EXPECT_EQ(transport->counters().open_operations, 0u);
}

}  // namespace
}  // namespace farkv

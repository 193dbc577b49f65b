// What every transport promises (common/transport/transport.h), as a typed
// suite. A backend joins by a default-constructible type with
//   std::unique_ptr<Transport> Create(TransportOptions options);
// and INSTANTIATE_TYPED_TEST_SUITE_P(Name, TransportConformanceTest, Type).
#ifndef FARKV_TESTS_CONFORMANCE_TRANSPORT_CONFORMANCE_H_
#define FARKV_TESTS_CONFORMANCE_TRANSPORT_CONFORMANCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/transport_fixture.h"

namespace farkv {

inline constexpr char kHost[] = "127.0.0.1";

template <typename Backend>
class TransportConformanceTest : public ::testing::Test {
 protected:
  using Mode = TestServer::Mode;

  void SetUp() override {
    const absl::Status started = StartServer(0);
    ASSERT_TRUE(started.ok()) << started;
  }

  // Every test ends with the same account: what was submitted completed once,
  // and no lent byte is still out.
  void TearDown() override {
    if (client_ != nullptr) {
      const auto balanced = [this] {
        const TransportCounters counters = client_->counters();
        return counters.submitted == counters.completed;
      };
      EXPECT_TRUE(Eventually(balanced))
          << client_->counters().submitted << " submitted, "
          << client_->counters().completed << " completed";
    }
    client_.reset();
    server_.TakeHeld();
    server_transport_.reset();
    EXPECT_EQ(leases_.out(), 0);
  }

  absl::Status StartServer(uint16_t port) {
    server_transport_ = backend_.Create(server_.Options(&executor_));
    server_.set_transport(server_transport_.get());
    FARKV_ASSIGN_OR_RETURN(port_, server_transport_->Listen(kHost, port));
    return absl::OkStatus();
  }

  TransportOptions ClientOptions() {
    TransportOptions options;
    options.executor = &executor_;
    options.on_peer_lost = [this](PeerId, absl::Status) {
      client_lost_.fetch_add(1);
    };
    return options;
  }
  void StartClient(TransportOptions options) {
    client_ = backend_.Create(std::move(options));
    const auto peer = client_->Connect(kHost, port_);
    ASSERT_TRUE(peer.ok()) << peer.status();
    peer_ = *peer;
  }
  void StartClient() { StartClient(ClientOptions()); }

  Request MakeRequest(std::vector<std::byte> body,
                      absl::Duration timeout = kPatience) {
    Request request;
    request.header.type = MessageType::kFetchRequest;
    request.timeout = timeout;
    if (!body.empty()) request.body.push_back(leases_.Lend(std::move(body)));
    return request;
  }
  absl::StatusOr<OperationId> Submit(std::vector<std::byte> body,
                                     absl::Duration timeout = kPatience) {
    return client_->Submit(peer_, MakeRequest(std::move(body), timeout),
                           results_.Expect());
  }
  absl::StatusOr<Message> Call(std::vector<std::byte> body,
                               absl::Duration timeout = kPatience) {
    const auto submitted = Submit(std::move(body), timeout);
    if (!submitted.ok()) return submitted.status();
    auto results = results_.Wait(1);
    if (results.empty()) return absl::InternalError("no completion");
    return std::move(results[0]);
  }
  absl::StatusCode CallCode(absl::Duration timeout = kPatience) {
    return Call({}, timeout).status().code();
  }
  void ExpectEcho(const std::vector<std::byte>& body) {
    absl::StatusOr<Message> reply = Call(body);
    ASSERT_TRUE(reply.ok()) << reply.status();
    const auto bytes = reply->body.bytes();
    ASSERT_EQ(bytes.size(), body.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), body.begin()));
    EXPECT_TRUE(CheckMessage(reply->header_bytes, bytes).ok());
  }
  // Submits `count` requests that the server keeps.
  void Hold(int count) {
    server_.set_mode(Mode::kHold);
    for (int i = 0; i < count; ++i) {
      const auto submitted = Submit(RandomBytes(100, 1));
      ASSERT_TRUE(submitted.ok()) << submitted.status();
    }
    ASSERT_TRUE(Eventually(
        [&] { return server_.num_held() == static_cast<size_t>(count); }));
  }

  LeaseCounter leases_;
  Results results_;
  TestServer server_;
  std::atomic<int> client_lost_{0};
  ThreadExecutor executor_{2};
  Backend backend_;
  std::unique_ptr<Transport> server_transport_;
  std::unique_ptr<Transport> client_;
  uint16_t port_ = 0;
  PeerId peer_;
};

TYPED_TEST_SUITE_P(TransportConformanceTest);

TYPED_TEST_P(TransportConformanceTest, ABodyInPiecesArrivesWhole) {
  this->StartClient();
  const auto whole = RandomBytes(5000, 3);
  Request request = this->MakeRequest({});
  for (auto [from, to] : {std::pair{0, 1}, {1, 3000}, {3000, 5000}}) {
    request.body.push_back(
        this->leases_.Lend({whole.begin() + from, whole.begin() + to}));
  }

  ASSERT_TRUE(
      this->client_
          ->Submit(this->peer_, std::move(request), this->results_.Expect())
          .ok());

  auto results = this->results_.Wait(1);
  ASSERT_EQ(results.size(), 1u);
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  const auto bytes = results[0]->body.bytes();
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), whole.begin(), whole.end()));
}

TYPED_TEST_P(TransportConformanceTest, EverySizeArrivesIntact) {
  this->StartClient();
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{63}, size_t{8192}, size_t{65536},
        size_t{300000}, size_t{1} << 20, (size_t{4} << 20) + 7}) {
    SCOPED_TRACE(size);
    this->ExpectEcho(RandomBytes(size, size));
  }
}

TYPED_TEST_P(TransportConformanceTest, ManyOperationsEachGetTheirOwnReply) {
  this->StartClient();
  constexpr int kRounds = 10;
  constexpr int kTogether = 100;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kTogether; ++i) {
      auto body = RandomBytes(static_cast<size_t>(i * 97), 0);
      ASSERT_TRUE(this->Submit(std::move(body)).ok());
    }
    std::vector<size_t> sizes;
    for (const auto& result : this->results_.Wait(kTogether)) {
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(
          CheckMessage(result->header_bytes, result->body.bytes()).ok());
      sizes.push_back(result->body.size());
    }
    std::sort(sizes.begin(), sizes.end());
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(sizes[i], i * 97);
  }
}

TYPED_TEST_P(TransportConformanceTest, AHandlersErrorArrivesNamingThePeer) {
  this->StartClient();
  this->server_.set_mode(TestServer::Mode::kFail);

  const absl::Status status = this->Call(RandomBytes(10, 1)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(absl::StrCat(this->port_)));
}

TYPED_TEST_P(TransportConformanceTest, AServerWithoutAHandlerRefuses) {
  this->StartClient();
  auto other = this->backend_.Create(this->ClientOptions());
  const auto port = other->Listen(kHost, 0);
  ASSERT_TRUE(port.ok()) << port.status();
  const auto peer = this->client_->Connect(kHost, *port);
  ASSERT_TRUE(peer.ok());
  this->peer_ = *peer;

  EXPECT_EQ(this->CallCode(), absl::StatusCode::kUnavailable);
}

TYPED_TEST_P(TransportConformanceTest, TheOperationBeyondTheWindowIsRefused) {
  TransportOptions options = this->ClientOptions();
  options.max_operations_per_peer = 3;
  this->StartClient(std::move(options));
  this->Hold(3);

  const auto refused = this->Submit(RandomBytes(10, 1));

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  for (Incoming& incoming : this->server_.TakeHeld()) {
    this->server_.Echo(std::move(incoming));
  }
  for (const auto& result : this->results_.Wait(3)) {
    EXPECT_TRUE(result.ok()) << result.status();
  }
  this->server_.set_mode(TestServer::Mode::kEcho);
  this->ExpectEcho(RandomBytes(10, 1));
}

TYPED_TEST_P(TransportConformanceTest, TheByteBeyondTheWindowIsRefused) {
  TransportOptions options = this->ClientOptions();
  options.max_bytes_in_flight_per_peer = 250;
  this->StartClient(std::move(options));
  this->Hold(2);

  EXPECT_EQ(this->Submit(RandomBytes(51, 1)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(this->client_->counters().submitted, 2u);

  this->client_->ClosePeer(this->peer_);
  this->results_.Wait(2);
}

TYPED_TEST_P(TransportConformanceTest, TheServerRefusesBeyondItsOwnWindow) {
  this->client_.reset();
  this->server_transport_.reset();
  TransportOptions options = this->server_.Options(&this->executor_);
  options.max_operations_per_peer = 2;
  this->server_transport_ = this->backend_.Create(std::move(options));
  this->server_.set_transport(this->server_transport_.get());
  const auto port = this->server_transport_->Listen(kHost, 0);
  ASSERT_TRUE(port.ok()) << port.status();
  this->port_ = *port;
  this->StartClient();
  this->Hold(2);

  EXPECT_EQ(this->CallCode(), absl::StatusCode::kResourceExhausted);

  for (Incoming& incoming : this->server_.TakeHeld()) {
    this->server_.Echo(std::move(incoming));
  }
  this->results_.Wait(2);
}

TYPED_TEST_P(TransportConformanceTest, SilenceEndsAtTheDeadline) {
  this->StartClient();
  this->server_.set_mode(TestServer::Mode::kHold);

  EXPECT_EQ(this->CallCode(absl::Milliseconds(30)),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(this->Call(RandomBytes(1 << 20, 1), absl::Milliseconds(30))
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
}

TYPED_TEST_P(TransportConformanceTest, ALateReplyIsDroppedAndCounted) {
  this->StartClient();
  this->server_.set_mode(TestServer::Mode::kHold);
  // On a busy machine a request may run out of time before it is sent.
  for (absl::Duration timeout = absl::Milliseconds(30);
       this->server_.num_held() == 0; timeout *= 2) {
    ASSERT_EQ(this->CallCode(timeout), absl::StatusCode::kDeadlineExceeded);
  }

  this->server_.Echo(std::move(this->server_.TakeHeld()[0]));

  EXPECT_TRUE(Eventually(
      [&] { return this->client_->counters().dropped_messages == 1; }));
  EXPECT_EQ(this->results_.size(), 0u);
}

TYPED_TEST_P(TransportConformanceTest, AReplyToNothingIsDroppedAndCounted) {
  this->StartClient();
  this->Hold(1);
  Incoming held = std::move(this->server_.TakeHeld()[0]);
  MessageHeader wrong_id = held.message.header;
  wrong_id.type = MessageType::kFetchReply;
  wrong_id.request_id += uint64_t{1} << 32;
  MessageHeader wrong_type = held.message.header;
  wrong_type.type = MessageType::kAttendReply;
  MessageHeader wrong_session = held.message.header;
  wrong_session.type = MessageType::kFetchReply;
  wrong_session.session.bytes[0] ^= 1;

  ASSERT_TRUE(this->server_transport_->Reply(held.peer, wrong_id, {}).ok());
  ASSERT_TRUE(this->server_transport_->Reply(held.peer, wrong_type, {}).ok());
  ASSERT_TRUE(
      this->server_transport_->Reply(held.peer, wrong_session, {}).ok());

  EXPECT_TRUE(Eventually(
      [&] { return this->client_->counters().dropped_messages == 3; }));
  EXPECT_EQ(this->results_.size(), 0u);
  this->server_.Echo(std::move(held));
  EXPECT_TRUE(this->results_.Wait(1)[0].ok());
}

TYPED_TEST_P(TransportConformanceTest, ACancelledOperationCompletesOnce) {
  this->StartClient();
  this->server_.set_mode(TestServer::Mode::kHold);
  const auto at_once = this->Submit(RandomBytes(1 << 20, 1));
  ASSERT_TRUE(at_once.ok());
  this->client_->Cancel(*at_once);
  this->client_->Cancel(*at_once);
  EXPECT_EQ(this->results_.Wait(1)[0].status().code(),
            absl::StatusCode::kCancelled);
  this->server_.TakeHeld();

  const auto posted = this->Submit(RandomBytes(100, 1));
  ASSERT_TRUE(posted.ok());
  ASSERT_TRUE(Eventually([&] {
    for (Incoming& incoming : this->server_.TakeHeld()) {
      if (incoming.message.body.size() == 100) return true;
    }
    return false;
  }));
  this->client_->Cancel(*posted);

  EXPECT_EQ(this->results_.Wait(1)[0].status().code(),
            absl::StatusCode::kCancelled);
}

TYPED_TEST_P(TransportConformanceTest, CancellingAFinishedOperationIsTooLate) {
  this->StartClient();
  const auto submitted = this->Submit(RandomBytes(10, 1));
  ASSERT_TRUE(submitted.ok());
  EXPECT_TRUE(this->results_.Wait(1)[0].ok());

  this->client_->Cancel(*submitted);
  this->client_->Cancel(OperationId{12345});

  this->ExpectEcho(RandomBytes(10, 1));
  EXPECT_EQ(this->client_->counters().completed, 2u);
}

TYPED_TEST_P(TransportConformanceTest, EndedOperationsGiveTheirSlotsBack) {
  TransportOptions options = this->ClientOptions();
  options.max_operations = 4;
  this->StartClient(std::move(options));
  this->server_.set_mode(TestServer::Mode::kHold);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Eventually([&] {
      return this->Submit(RandomBytes(100, 1), absl::Milliseconds(5)).ok();
    }));
  }
  for (const auto& result : this->results_.Wait(20)) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  }

  // One that ends while it is queued has its slot until the queue is seen to.
  EXPECT_TRUE(Eventually(
      [&] { return this->client_->counters().open_operations == 0; }));
  this->server_.TakeHeld();
  this->server_.set_mode(TestServer::Mode::kEcho);
  this->ExpectEcho(RandomBytes(10, 1));
}

TYPED_TEST_P(TransportConformanceTest, ClosingAPeerEndsItsOperations) {
  this->StartClient();
  this->Hold(5);

  this->client_->ClosePeer(this->peer_);

  for (const auto& result : this->results_.Wait(5)) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(Eventually([&] { return this->server_.lost() == 1; }));
  EXPECT_EQ(this->client_lost_.load(), 0);
  EXPECT_TRUE(Eventually([&] {
    return this->Submit({}).status().code() == absl::StatusCode::kNotFound;
  }));
}

TYPED_TEST_P(TransportConformanceTest, AReplyToALostPeerIsRefused) {
  this->StartClient();
  this->Hold(1);
  Incoming held = std::move(this->server_.TakeHeld()[0]);
  this->client_->ClosePeer(this->peer_);
  this->results_.Wait(1);
  ASSERT_TRUE(Eventually([&] { return this->server_.lost() == 1; }));

  MessageHeader header = held.message.header;
  header.type = MessageType::kFetchReply;
  std::vector<BufferLease> body;
  body.push_back(this->leases_.Lend(RandomBytes(10, 1)));

  EXPECT_FALSE(
      this->server_transport_->Reply(held.peer, header, std::move(body)).ok());
}

TYPED_TEST_P(TransportConformanceTest, AnUnknownPeerIsNotFound) {
  this->StartClient();

  EXPECT_EQ(this->client_
                ->Submit(PeerId{this->peer_.value + 1}, this->MakeRequest({}),
                         this->results_.Expect())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TYPED_TEST_P(TransportConformanceTest, NobodyListeningMeansUnavailable) {
  const SilentPort silent;
  this->port_ = silent.port();

  this->StartClient();
  const auto submitted = this->Submit(RandomBytes(100, 1));

  if (submitted.ok()) {
    EXPECT_EQ(this->results_.Wait(1)[0].status().code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(Eventually([&] { return this->client_lost_.load() == 1; }));
}

TYPED_TEST_P(TransportConformanceTest, ATakenPortIsNamed) {
  auto other = this->backend_.Create(this->ClientOptions());

  const absl::Status status = other->Listen(kHost, this->port_).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(absl::StrCat(this->port_)));
}

TYPED_TEST_P(TransportConformanceTest, AServerComesBackOnItsPort) {
  absl::Status back = absl::AlreadyExistsError("not tried yet");
  // Whoever takes the port meanwhile may keep it.
  for (int tries = 1; absl::IsAlreadyExists(back) && tries <= 5; ++tries) {
    this->client_.reset();
    this->server_transport_.reset();
    ASSERT_TRUE(this->StartServer(0).ok());
    this->StartClient();
    this->Hold(2);

    this->server_.TakeHeld();
    this->server_transport_.reset();
    for (const auto& result : this->results_.Wait(2)) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
    }
    EXPECT_TRUE(Eventually([&] { return this->client_lost_.load() == tries; }));
    EXPECT_FALSE(this->Submit({}).ok());

    back = this->StartServer(this->port_);
  }
  ASSERT_TRUE(back.ok()) << back;
  this->server_.set_mode(TestServer::Mode::kEcho);
  const auto peer = this->client_->Connect(kHost, this->port_);
  ASSERT_TRUE(peer.ok()) << peer.status();
  this->peer_ = *peer;
  this->ExpectEcho(RandomBytes(1000, 1));
}

TYPED_TEST_P(TransportConformanceTest, ATransportMayGoRightAfterItsConnect) {
  for (int i = 0; i < 5; ++i) {
    this->StartClient();
    ASSERT_TRUE(this->Submit(RandomBytes(100, 1)).ok());
    this->client_.reset();
    this->results_.Wait(1);
  }

  this->StartClient();
  this->ExpectEcho(RandomBytes(100, 1));
}

TYPED_TEST_P(TransportConformanceTest, ShutdownEndsEverything) {
  this->StartClient();
  this->Hold(5);

  this->client_->Shutdown(absl::Milliseconds(10));
  this->client_->Shutdown(absl::Milliseconds(10));

  for (const auto& result : this->results_.Wait(5)) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_FALSE(this->Submit({}).ok());
  EXPECT_EQ(this->leases_.out(), 0);
}

TYPED_TEST_P(TransportConformanceTest, ShutdownWaitsForAReplyUnderWay) {
  this->StartClient();
  this->Hold(1);
  std::thread answer([&] {
    for (Incoming& incoming : this->server_.TakeHeld()) {
      this->server_.Echo(std::move(incoming));
    }
  });

  this->client_->Shutdown(kPatience);

  answer.join();
  EXPECT_TRUE(this->results_.Wait(1)[0].ok());
}

// Whether it can be answered is the handler's to say: here it is.
TYPED_TEST_P(TransportConformanceTest, ATypeOfALaterProgramReachesTheHandler) {
  this->StartClient();
  Request request = this->MakeRequest(RandomBytes(100, 1));
  request.header.type = static_cast<MessageType>(0x7fff);

  ASSERT_TRUE(
      this->client_
          ->Submit(this->peer_, std::move(request), this->results_.Expect())
          .ok());

  const auto reply = std::move(this->results_.Wait(1)[0]);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->header.type, static_cast<MessageType>(0x8000));
  EXPECT_EQ(this->client_lost_.load(), 0);
}

TYPED_TEST_P(TransportConformanceTest, AMalformedRequestIsRefusedAtOnce) {
  this->StartClient();
  Request reply_type = this->MakeRequest({});
  reply_type.header.type = MessageType::kFetchReply;
  Request no_timeout = this->MakeRequest({}, absl::ZeroDuration());
  Request endless = this->MakeRequest({}, absl::InfiniteDuration());
  Request huge = this->MakeRequest(std::vector<std::byte>(kMaxBodyBytes + 1));

  for (Request* request : {&reply_type, &no_timeout, &endless, &huge}) {
    EXPECT_EQ(
        this->client_
            ->Submit(this->peer_, std::move(*request), this->results_.Expect())
            .status()
            .code(),
        absl::StatusCode::kInvalidArgument);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    TransportConformanceTest, ABodyInPiecesArrivesWhole, EverySizeArrivesIntact,
    ManyOperationsEachGetTheirOwnReply, AHandlersErrorArrivesNamingThePeer,
    AServerWithoutAHandlerRefuses, TheOperationBeyondTheWindowIsRefused,
    TheByteBeyondTheWindowIsRefused, TheServerRefusesBeyondItsOwnWindow,
    SilenceEndsAtTheDeadline, ALateReplyIsDroppedAndCounted,
    AReplyToNothingIsDroppedAndCounted, ACancelledOperationCompletesOnce,
    CancellingAFinishedOperationIsTooLate, EndedOperationsGiveTheirSlotsBack,
    ClosingAPeerEndsItsOperations, AReplyToALostPeerIsRefused,
    AnUnknownPeerIsNotFound, NobodyListeningMeansUnavailable, ATakenPortIsNamed,
    AServerComesBackOnItsPort, ATransportMayGoRightAfterItsConnect,
    ShutdownEndsEverything, ShutdownWaitsForAReplyUnderWay,
    ATypeOfALaterProgramReachesTheHandler, AMalformedRequestIsRefusedAtOnce);

}  // namespace farkv

#endif  // FARKV_TESTS_CONFORMANCE_TRANSPORT_CONFORMANCE_H_

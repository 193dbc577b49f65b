// A peer process that is killed or stopped while messages are under way. The
// peer is this program again, started with "serve" or "call".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/transport_child.h"
#include "tests/conformance/transport_fixture.h"

namespace farkv {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr size_t kBodyBytes = size_t{4} << 20;

std::unique_ptr<Transport> MakeTransport(TransportOptions options) {
  return CreateUcxTransport(std::move(options), UcxOptions()).value();
}

Request LargeRequest(BufferLease body, absl::Duration timeout) {
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.timeout = timeout;
  request.body.push_back(std::move(body));
  return request;
}

class UcxDeathTest : public ::testing::Test {
 protected:
  void StartClient(uint16_t port) {
    TransportOptions options;
    options.executor = &executor_;
    options.on_peer_lost = [this](PeerId, absl::Status) { ++lost_; };
    client_ = MakeTransport(std::move(options));
    peer_ = client_->Connect(kHost, port).value();
  }
  void Submit(int count, absl::Duration timeout) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(
          client_
              ->Submit(peer_,
                       LargeRequest(leases_.Lend(RandomBytes(kBodyBytes, 1)),
                                    timeout),
                       results_.Expect())
              .ok());
    }
  }

  LeaseCounter leases_;
  Results results_;
  std::atomic<int> lost_{0};
  ThreadExecutor executor_{2};
  std::unique_ptr<Transport> client_;
  PeerId peer_;
};

TEST_F(UcxDeathTest, AKilledServerEndsEveryOperationAndReturnsEveryByte) {
  Child server("serve", 0);
  StartClient(static_cast<uint16_t>(server.ReadNumber()));
  Submit(1, kPatience);
  ASSERT_TRUE(results_.Wait(1)[0].ok());
  Submit(10, absl::Minutes(10));  // some may be answered before it stops
  server.Stop();
  Submit(10, absl::Minutes(10));

  server.Signal(SIGKILL);

  int unavailable = 0;
  for (const auto& result : results_.Wait(20)) {
    if (result.status().code() == absl::StatusCode::kUnavailable) {
      ++unavailable;
    } else {
      EXPECT_TRUE(result.ok()) << result.status();
    }
  }
  EXPECT_GE(unavailable, 10);
  EXPECT_TRUE(Eventually([&] { return leases_.out() == 0; }));
  EXPECT_TRUE(Eventually([&] { return lost_ == 1; }));
}

TEST_F(UcxDeathTest, AStoppedServerMeansDeadlinesAndAForcedCloseReturnsBytes) {
  Child server("serve", 0);
  const auto port = static_cast<uint16_t>(server.ReadNumber());
  StartClient(port);
  Submit(1, kPatience);
  ASSERT_TRUE(results_.Wait(1)[0].ok());

  server.Stop();
  // On a busy machine requests may run out of time before they are posted.
  for (absl::Duration timeout = absl::Milliseconds(100);
       leases_.out() == 0 && timeout < kPatience; timeout *= 2) {
    Submit(10, timeout);
    for (const auto& result : results_.Wait(10)) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
    }
  }
  EXPECT_GT(leases_.out(), 0);  // under way, so not ours yet
  client_->ClosePeer(peer_);
  EXPECT_TRUE(Eventually([&] { return leases_.out() == 0; }));

  server.Signal(SIGCONT);
  peer_ = client_->Connect(kHost, port).value();
  Submit(1, kPatience);
  EXPECT_TRUE(results_.Wait(1)[0].ok());
}

// The kernel takes the connection; nobody reads the message.
TEST_F(UcxDeathTest, AHelloToAStoppedServerEndsByItsDeadlineAndNamesIt) {
  Child server("serve", 0);
  const auto port = static_cast<uint16_t>(server.ReadNumber());
  server.Stop();
  StartClient(port);

  Submit(1, absl::Milliseconds(300));

  const absl::Status status = results_.Wait(1)[0].status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(absl::StrCat("127.0.0.1:", port)));
  client_->ClosePeer(peer_);
  server.Signal(SIGCONT);
  peer_ = client_->Connect(kHost, port).value();
  Submit(1, kPatience);
  EXPECT_TRUE(results_.Wait(1)[0].ok());
  EXPECT_TRUE(Eventually([&] { return leases_.out() == 0; }));
}

TEST_F(UcxDeathTest, AKilledClientLeavesTheServerServing) {
  TestServer server;
  auto transport = MakeTransport(server.Options(&executor_));
  server.set_transport(transport.get());
  const uint16_t port = transport->Listen(kHost, 0).value();
  for (int round = 1; round <= 3; ++round) {
    Child caller("call", port);
    ASSERT_EQ(caller.ReadNumber(), 1u);  // its replies flow

    caller.Signal(SIGKILL);

    EXPECT_TRUE(Eventually([&] { return server.lost() == round; }));
  }

  StartClient(port);
  Submit(2, kPatience);
  for (const auto& result : results_.Wait(2)) {
    EXPECT_TRUE(result.ok()) << result.status();
  }
}

// ---- The other roles.

[[noreturn]] void Serve() {
  ThreadExecutor executor(1);
  TestServer server;
  auto transport = MakeTransport(server.Options(&executor));
  server.set_transport(transport.get());
  std::printf("%d\n", transport->Listen(kHost, 0).value());
  std::fflush(stdout);
  for (;;) pause();
}

// Keeps large requests under way; says 1 once replies have come.
[[noreturn]] void Call(uint16_t port) {
  ThreadExecutor executor(1);
  TransportOptions options;
  options.executor = &executor;
  auto transport = MakeTransport(std::move(options));
  const PeerId peer = transport->Connect(kHost, port).value();
  Results results;
  for (int round = 0;; ++round) {
    for (int i = 0; i < 8; ++i) {
      const auto submitted = transport->Submit(
          peer,
          LargeRequest(BufferLease::Owning(RandomBytes(kBodyBytes, 1)),
                       absl::Minutes(10)),
          results.Expect());
      if (!submitted.ok()) std::exit(1);
    }
    results.Wait(8);
    if (round == 0) std::printf("1\n");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace farkv

int main(int argc, char** argv) {
  const std::string role = argc == 3 ? argv[1] : "";
  const int number = argc == 3 ? std::atoi(argv[2]) : 0;
  if (role == "serve") farkv::Serve();
  if (role == "call") farkv::Call(static_cast<uint16_t>(number));
  if (role == "half-reply") farkv::ReplyInPart(number);
  if (role == "half-request") {
    farkv::RequestInPart(static_cast<uint16_t>(number));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

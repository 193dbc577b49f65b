// A peer process that is killed or stopped while messages are under way. The
// peer is this program again, started with "serve" or "call".
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gtest/gtest.h"
#include "tests/conformance/transport_fixture.h"

extern char** environ;

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

// This program in another role, its standard output read through a pipe.
class Child {
 public:
  Child(const char* role, uint16_t port) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string port_text = absl::StrCat(port);
    std::string program = "/proc/self/exe", role_text = role;
    char* arguments[] = {program.data(), role_text.data(),
                         const_cast<char*>(port_text.c_str()), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments,
                          environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Child() {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    fclose(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The number that the child prints next.
  uint32_t ReadNumber() {
    char line[32] = "";
    uint32_t number = 0;
    EXPECT_NE(fgets(line, sizeof(line), output_), nullptr);
    EXPECT_TRUE(absl::SimpleAtoi(line, &number));
    return number;
  }
  void Signal(int signal) { kill(pid_, signal); }
  // Returns when none of its threads runs any more.
  void Stop() {
    Signal(SIGSTOP);
    siginfo_t state{};
    waitid(P_PID, static_cast<id_t>(pid_), &state,
           WSTOPPED | WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
};

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
  if (role == "serve") farkv::Serve();
  if (role == "call") farkv::Call(static_cast<uint16_t>(std::atoi(argv[2])));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// What a hostile or broken peer can send to a UCX transport. A crafted client
// is put together from the transport's own parts, with headers replaced.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/endian.h"
#include "common/transport/ucx/endpoints.h"
#include "common/transport/ucx/message_sender.h"
#include "common/transport/ucx/ucx_transport.h"
#include "common/transport/ucx/ucx_worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/transport_fixture.h"

namespace farkv {
namespace {

constexpr char kHost[] = "127.0.0.1";

// Sends one request whose header bytes `spoil` has changed and an honest one
// behind it, driving UCX by hand on the test's thread.
class CraftedClient {
 public:
  enum class Fate { kClosed, kServed, kNeither };

  // What becomes of the connection: the server closes on it, or `served` tells
  // that the honest request has arrived.
  Fate Send(uint16_t port, const std::function<void(EncodedHeader&)>& spoil,
            const std::function<bool()>& served) {
    engine_thread.Enter();
    const Fate fate = Run(port, spoil, served);
    engine_thread.Leave();
    return fate;
  }

 private:
  Fate Run(uint16_t port, const std::function<void(EncodedHeader&)>& spoil,
           const std::function<bool()>& served)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    TransportOptions options;
    options.executor = &executor_;
    auto table = OperationTable::Create(std::move(options), [] {});
    auto worker = UcxWorker::Create(UcxOptions(), true).value();
    auto endpoints = std::make_unique<Endpoints>(worker->get(), table.get(),
                                                 Clock::Boottime());
    MessageSender sender(table.get(), endpoints.get(), 1024);
    const PeerId peer =
        endpoints->Connect(ResolveAddress(kHost, port).value(), "server")
            .value();
    for (int i = 0; i < 2; ++i) {
      Request request;
      request.header.type = MessageType::kFetchRequest;
      request.timeout = absl::Minutes(1);
      request.body.push_back(BufferLease::Owning(RandomBytes(1000, 1)));
      EXPECT_TRUE(table->Submit(peer, std::move(request), [](auto) {}).ok());
    }
    auto posted = table->TakeQueued();
    EncodedHeader header = *posted.at(0).header;
    spoil(header);
    posted[0].header = &header;
    for (auto& message : posted) sender.Post(message);
    Fate fate = Fate::kNeither;
    ProgressUntil(*worker, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
      sender.DeliverFinished();
      if (!table->CheckOpen(peer).ok()) fate = Fate::kClosed;
      if (served()) fate = Fate::kServed;
      return fate != Fate::kNeither;
    });
    table->FailAllPeers(absl::UnavailableError("done"));
    for (PeerId closing : table->TakeClosing()) endpoints->Close(closing);
    ProgressUntil(*worker, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
      return !endpoints->PollClosing();
    });
    worker.reset();
    endpoints.reset();
    sender.AbandonAll();
    return fate;
  }

  template <typename Predicate>
  bool ProgressUntil(UcxWorker& worker, Predicate done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    const absl::Time end = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > end) return false;
      if (!worker.Progress()) worker.Sleep(absl::Milliseconds(1));
    }
    return true;
  }

  ThreadExecutor executor_{1};
};

class UcxHostileTest : public ::testing::Test {
 protected:
  UcxHostileTest() {
    server_transport_ =
        CreateUcxTransport(server_.Options(&executor_), UcxOptions()).value();
    server_.set_transport(server_transport_.get());
    port_ = server_transport_->Listen(kHost, 0).value();
  }
  // An honest client is served as ever.
  void ExpectService() {
    TransportOptions options;
    options.executor = &executor_;
    auto client = CreateUcxTransport(std::move(options), UcxOptions()).value();
    const PeerId peer = client->Connect(kHost, port_).value();
    Results results;
    Request request;
    request.header.type = MessageType::kFetchRequest;
    request.timeout = kPatience;
    request.body.push_back(BufferLease::Owning(RandomBytes(1 << 20, 2)));
    ASSERT_TRUE(
        client->Submit(peer, std::move(request), results.Expect()).ok());
    const auto result = std::move(results.Wait(1)[0]);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->body.size(), size_t{1} << 20);
  }
  // `fate`: of the connection, on which an honest request follows. What the
  // server drops it counts, and others are served as ever.
  void ExpectCounted(CraftedClient::Fate fate,
                     const std::function<void(EncodedHeader&)>& spoil) {
    CraftedClient client;
    const TransportCounters before = server_transport_->counters();
    const int lost = server_.lost();

    EXPECT_EQ(
        client.Send(port_, spoil,
                    [&] {
                      return server_transport_->counters().requests_received >
                             before.requests_received;
                    }),
        fate);

    EXPECT_GT(server_transport_->counters().dropped_messages,
              before.dropped_messages);
    EXPECT_TRUE(Eventually([&] { return server_.lost() == lost + 1; }));
    ExpectService();
  }
  void ExpectDropped(const std::function<void(EncodedHeader&)>& spoil) {
    ExpectCounted(CraftedClient::Fate::kServed, spoil);
  }

  ThreadExecutor executor_{2};
  TestServer server_;
  std::unique_ptr<Transport> server_transport_;
  uint16_t port_ = 0;
};

TEST_F(UcxHostileTest, AGarbageHeaderClosesItsPeerOnly) {
  ExpectCounted(CraftedClient::Fate::kClosed, [](EncodedHeader& header) {
    const auto garbage = RandomBytes(header.size(), 99);
    std::copy(garbage.begin(), garbage.end(), header.begin());
  });
}

TEST_F(UcxHostileTest, AMessageOfAnotherVersionIsDropped) {
  ExpectDropped(
      [](EncodedHeader& header) { StoreLe<uint16_t>(&header[4], 2); });
}

TEST_F(UcxHostileTest, AMessageOfNoTypeIsDropped) {
  ExpectDropped(
      [](EncodedHeader& header) { StoreLe<uint16_t>(&header[6], 0); });
}

TEST_F(UcxHostileTest, AHugeBodyLengthIsDropped) {
  ExpectDropped([](EncodedHeader& header) {
    StoreLe<uint64_t>(&header[56], uint64_t{1} << 60);
  });
}

TEST_F(UcxHostileTest, AWrongBodyLengthIsDropped) {
  ExpectDropped(
      [](EncodedHeader& header) { StoreLe<uint64_t>(&header[56], 999); });
}

// Both ends learn of it at once; there is nothing wrong with the connection.
TEST_F(UcxHostileTest, ABodyThereIsNoMemoryForIsRefused) {
  UcxOptions small;
  small.max_incoming_bytes = 1000;
  TransportOptions options;
  options.executor = &executor_;
  const auto client = CreateUcxTransport(std::move(options), small).value();
  const PeerId peer = client->Connect(kHost, port_).value();
  Results results;
  for (const size_t size : {size_t{1} << 20, size_t{900}}) {
    Request request;
    request.header.type = MessageType::kFetchRequest;
    request.timeout = kPatience;
    request.body.push_back(BufferLease::Owning(RandomBytes(size, 2)));
    ASSERT_TRUE(
        client->Submit(peer, std::move(request), results.Expect()).ok());
    const auto result = std::move(results.Wait(1)[0]);
    EXPECT_EQ(result.status().code(),
              size < 1000 ? absl::StatusCode::kOk
                          : absl::StatusCode::kResourceExhausted)
        << result.status();
  }

  TestServer scarce_server;
  const auto scarce =
      CreateUcxTransport(scarce_server.Options(&executor_), small).value();
  scarce_server.set_transport(scarce.get());
  port_ = scarce->Listen(kHost, 0).value();
  TransportOptions rich;
  rich.executor = &executor_;
  const auto other = CreateUcxTransport(std::move(rich), UcxOptions()).value();
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.timeout = kPatience;
  request.body.push_back(BufferLease::Owning(RandomBytes(1 << 20, 2)));
  ASSERT_TRUE(other
                  ->Submit(other->Connect(kHost, port_).value(),
                           std::move(request), results.Expect())
                  .ok());
  EXPECT_EQ(results.Wait(1)[0].status().code(),
            absl::StatusCode::kResourceExhausted);
}

// The sockets of this process, as /proc/net/tcp names them.
std::set<std::string> OwnSockets() {
  std::set<std::string> inodes;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.rfind("socket:[", 0) == 0) {
      inodes.insert(target.substr(8, target.size() - 9));
    }
  }
  return inodes;
}

// The ports on which this process listens, UCX's data ports among them.
std::set<uint16_t> ListeningPorts() {
  const std::set<std::string> own = OwnSockets();
  std::set<uint16_t> ports;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream stream(line);
    const std::vector<std::string> fields(
        std::istream_iterator<std::string>(stream), {});
    const bool listens = fields.size() > 9 && fields[3] == "0A";
    if (!listens || !own.contains(fields[9])) continue;
    const std::string port = fields[1].substr(fields[1].find(':') + 1);
    ports.insert(static_cast<uint16_t>(std::stoul(port, nullptr, 16)));
  }
  return ports;
}

void SendRaw(uint16_t port, const std::vector<std::byte>& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0) {
    (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

TEST_F(UcxHostileTest, RawGarbageOnAnyPortIsSurvived) {
  const std::set<uint16_t> ports = ListeningPorts();
  ASSERT_TRUE(ports.contains(port_));

  ASSERT_GE(ports.size(), 2u);  // UCX opened one for data

  for (uint16_t port : ports) {
    for (uint64_t round = 0; round < 10; ++round) {
      SendRaw(port, RandomBytes(1 + round * 977, round));
      SendRaw(port, {});
    }
  }

  ExpectService();
}

// One caller waits for the name server; peers that are connected are served as
// ever, and the transport can be shut down.
TEST_F(UcxHostileTest, ASilentNameServerHoldsNobodyElseUp) {
  const auto released = std::make_shared<absl::Notification>();
  const auto asked = std::make_shared<absl::Notification>();
  UcxOptions ucx;
  ucx.resolve_timeout = kPatience;
  ucx.lookup = [released, asked](const std::string&, uint16_t port) {
    asked->Notify();
    released->WaitForNotification();
    return *ParseNumericAddress(kHost, port);
  };
  TransportOptions options;
  options.executor = &executor_;
  const auto client = CreateUcxTransport(std::move(options), ucx).value();
  absl::Status connected;
  std::thread caller(
      [&] { connected = client->Connect("far.example", port_).status(); });
  asked->WaitForNotification();

  Results results;
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.timeout = kPatience;
  request.body.push_back(BufferLease::Owning(RandomBytes(1000, 2)));
  const PeerId peer = client->Connect(kHost, port_).value();
  ASSERT_TRUE(client->Submit(peer, std::move(request), results.Expect()).ok());
  EXPECT_TRUE(results.Wait(1)[0].ok());
  client->Shutdown(absl::Seconds(1));

  released->Notify();
  caller.join();
  EXPECT_EQ(connected.code(), absl::StatusCode::kUnavailable) << connected;
}

// What a thread that spins uses, and how often one that polls wakes up.
struct Use {
  absl::Duration cpu;
  int64_t wakes = 0;
};

Use UseSoFar() {
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {absl::DurationFromTimespec(cpu), usage.ru_nvcsw};
}

// A poll each millisecond would be 400 wakes in every window. Work that is left
// from before is over at some time.
TEST_F(UcxHostileTest, ATransportWithNothingToDoUsesNoProcessor) {
  ExpectService();
  absl::Notification never;
  constexpr int64_t kFewWakes = 40;
  absl::Duration least_cpu = absl::InfiniteDuration();
  int64_t fewest_wakes = 400;

  for (int i = 0; i < 10; ++i) {
    const Use before = UseSoFar();
    never.WaitForNotificationWithTimeout(absl::Milliseconds(400));
    const Use after = UseSoFar();
    least_cpu = std::min(least_cpu, after.cpu - before.cpu);
    fewest_wakes = std::min(fewest_wakes, after.wakes - before.wakes);
    if (least_cpu < absl::Milliseconds(20) && fewest_wakes < kFewWakes) break;
  }

  EXPECT_LT(least_cpu, absl::Milliseconds(20));
  EXPECT_LT(fewest_wakes, kFewWakes);
}

}  // namespace
}  // namespace farkv

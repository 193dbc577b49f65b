// What the transport suites share: two transports of one backend, a server
// whose behaviour a test chooses, and counters of what went back.
#ifndef FARKV_TESTS_CONFORMANCE_TRANSPORT_FIXTURE_H_
#define FARKV_TESTS_CONFORMANCE_TRANSPORT_FIXTURE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/async/thread_executor.h"
#include "common/base/random.h"
#include "common/transport/transport.h"
#include "gtest/gtest.h"

namespace farkv {

// Long enough for a busy machine, short enough to fail a hanging test.
inline constexpr absl::Duration kPatience = absl::Seconds(20);

inline std::vector<std::byte> RandomBytes(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(SplitMix64At(seed, i / 64) >> (i % 8));
  }
  return bytes;
}

// Counts leases that are out and checks that each comes back.
class LeaseCounter {
 public:
  BufferLease Lend(std::vector<std::byte> bytes) {
    out_.fetch_add(1);
    auto owned = std::make_unique<std::vector<std::byte>>(std::move(bytes));
    const std::span<std::byte> view(*owned);
    return BufferLease(
        view, [this, owned = std::move(owned)]() { out_.fetch_sub(1); });
  }
  int out() const { return out_.load(); }

 private:
  std::atomic<int> out_{0};
};

// Results of many operations, in the order in which they came.
class Results {
 public:
  ReplyCallback Expect() {
    return [this](absl::StatusOr<Message> reply) {
      absl::MutexLock lock(&mutex_);
      results_.push_back(std::move(reply));
    };
  }
  // The results, once there are `count`; INTERNAL for each that is missing
  // when patience runs out.
  std::vector<absl::StatusOr<Message>> Wait(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return results_.size() >= count;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&enough), kPatience);
    EXPECT_EQ(results_.size(), count);
    while (results_.size() < count) {
      results_.push_back(absl::InternalError("no completion"));
    }
    return std::exchange(results_, {});
  }
  size_t size() {
    absl::MutexLock lock(&mutex_);
    return results_.size();
  }

 private:
  absl::Mutex mutex_;
  std::vector<absl::StatusOr<Message>> results_ ABSL_GUARDED_BY(mutex_);
};

// Polls a condition that other threads make true.
template <typename Predicate>
bool Eventually(Predicate predicate) {
  absl::Notification never;
  const absl::Time end = absl::Now() + kPatience;
  while (!predicate()) {
    if (absl::Now() > end) return false;
    never.WaitForNotificationWithTimeout(absl::Milliseconds(1));
  }
  return true;
}

// A TCP port of the loopback address that nobody listens on, nor can while it
// is bound here.
class SilentPort {
 public:
  SilentPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, any, size), 0);
    EXPECT_EQ(getsockname(fd_, any, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentPort() { close(fd_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  uint16_t port() const { return port_; }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  uint16_t port_ = 0;
};

// A transport that answers, or keeps requests for later.
class TestServer {
 public:
  enum class Mode { kEcho, kHold, kFail };

  TransportOptions Options(Executor* executor) {
    TransportOptions options;
    options.executor = executor;
    options.on_request = [this](Incoming incoming) {
      Handle(std::move(incoming));
    };
    options.on_peer_lost = [this](PeerId, absl::Status) { lost_.fetch_add(1); };
    return options;
  }
  void set_transport(Transport* transport) { transport_ = transport; }
  void set_mode(Mode mode) { mode_.store(mode); }
  int lost() const { return lost_.load(); }
  size_t num_held() {
    absl::MutexLock lock(&mutex_);
    return held_.size();
  }
  std::vector<Incoming> TakeHeld() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(held_, {});
  }
  // Sends the request's body back.
  void Echo(Incoming incoming) {
    MessageHeader header = incoming.message.header;
    if (!CheckMessage(incoming.message.header_bytes,
                      incoming.message.body.bytes())
             .ok()) {
      header.code = absl::StatusCode::kDataLoss;
    }
    header.type =
        static_cast<MessageType>(static_cast<uint16_t>(header.type) + 1);
    std::vector<BufferLease> body;
    body.push_back(std::move(incoming.message.body));
    transport_.load()
        ->Reply(incoming.peer, header, std::move(body))
        .IgnoreError();
  }

 private:
  void Handle(Incoming incoming) {
    if (mode_.load() == Mode::kHold) {
      absl::MutexLock lock(&mutex_);
      held_.push_back(std::move(incoming));
      return;
    }
    if (mode_.load() == Mode::kFail) {
      MessageHeader header = incoming.message.header;
      header.type =
          static_cast<MessageType>(static_cast<uint16_t>(header.type) + 1);
      header.code = absl::StatusCode::kFailedPrecondition;
      transport_.load()->Reply(incoming.peer, header, {}).IgnoreError();
      return;
    }
    Echo(std::move(incoming));
  }

  std::atomic<Transport*> transport_{nullptr};
  std::atomic<Mode> mode_{Mode::kEcho};
  std::atomic<int> lost_{0};
  absl::Mutex mutex_;
  std::vector<Incoming> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_TESTS_CONFORMANCE_TRANSPORT_FIXTURE_H_

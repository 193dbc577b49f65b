// Names of hosts to addresses, with a deadline. getaddrinfo may ask a name
// server, which can take longer than anybody wants to wait, and can be neither
// bounded nor cancelled: each lookup runs on a thread of its own, which is left
// behind when its time is up. A numeric address needs none.
//
// Goals: the caller is back in time, whatever the name server does; no lock is
// held over a lookup; the threads left behind are bounded. Non-goals: a cache,
// choosing among several addresses. Thread-safe; a lookup may outlive it.
#ifndef FARKV_COMMON_TRANSPORT_UCX_NAME_RESOLVER_H_
#define FARKV_COMMON_TRANSPORT_UCX_NAME_RESOLVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/transport/ucx/socket_address.h"

namespace farkv {

class NameResolver {
 public:
  // May block for as long as it likes; any number at a time.
  using Lookup = std::function<absl::StatusOr<SocketAddress>(
      const std::string& host, uint16_t port)>;
  // Lookups that may run at a time, those left behind included.
  static constexpr int kMaxLookups = 8;

  explicit NameResolver(absl::Duration timeout, Lookup lookup = ResolveAddress)
      : timeout_(timeout), lookup_(std::move(lookup)) {}
  NameResolver(const NameResolver&) = delete;
  NameResolver& operator=(const NameResolver&) = delete;

  // DEADLINE_EXCEEDED naming the host after the timeout; UNAVAILABLE when
  // kMaxLookups have not ended yet; else as the lookup says.
  absl::StatusOr<SocketAddress> Resolve(const std::string& host,
                                        uint16_t port) const;

 private:
  const absl::Duration timeout_;
  const Lookup lookup_;
  const std::shared_ptr<std::atomic<int>> running_ =
      std::make_shared<std::atomic<int>>(0);
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_NAME_RESOLVER_H_

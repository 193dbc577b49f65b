// A transport that misbehaves on purpose, for tests and the -faults programs;
// nothing else links it. It wraps a real transport and keeps every promise of
// transport.h to its caller: each operation still completes exactly once, by
// its deadline.
//
// Faults strike what arrives, after the transport inside took it off the wire
// and before the owner's handler or callback sees it: a flipped bit therefore
// meets the owner's CheckMessage with the checksum that was sent. The n-th
// message that arrives meets the same fate in every run with the same seed.
//
// Thread-safe. One thread of its own ends delays; it never sleeps otherwise.
#ifndef FARKV_COMMON_TRANSPORT_FAULTS_FAULT_TRANSPORT_H_
#define FARKV_COMMON_TRANSPORT_FAULTS_FAULT_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/transport/faults/fault_spec.h"
#include "common/transport/transport.h"

namespace farkv {

// How often each fault was injected.
struct FaultCounters {
  uint64_t dropped = 0;
  uint64_t duplicated = 0;
  uint64_t truncated = 0;
  uint64_t flipped = 0;
  uint64_t reordered = 0;
  uint64_t delayed = 0;
  uint64_t stalled = 0;  // stalls begun, not messages held by them
  uint64_t failed = 0;
};

class FaultTransport : public Transport {
 public:
  virtual FaultCounters injected() const = 0;
};

using TransportFactory =
    std::function<absl::StatusOr<std::unique_ptr<Transport>>(TransportOptions)>;

// `factory` makes the transport inside, from `options` with the handlers
// replaced.
absl::StatusOr<std::unique_ptr<FaultTransport>> CreateFaultTransport(
    const FaultSpec& spec, TransportOptions options,
    const TransportFactory& factory);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_FAULTS_FAULT_TRANSPORT_H_

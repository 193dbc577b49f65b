// A network inside the process: the transport for tests and for a worker and a
// node in one program. Same promises as over a wire, late completions
// included: a send becomes final one round after its delivery, so a reply may
// come first. Bodies are copied, as a wire would.
//
// With Drive::kThread the network has one thread that moves everything. With
// Drive::kSteps nothing moves until a test calls Step(), on one thread at a
// time; with a manual clock and a stepping executor a test then owns the order
// of every event.
#ifndef FARKV_COMMON_TRANSPORT_LOOPBACK_TRANSPORT_H_
#define FARKV_COMMON_TRANSPORT_LOOPBACK_TRANSPORT_H_

#include <cstdint>
#include <memory>

#include "common/transport/transport.h"

namespace farkv {

class LoopbackNetwork {
 public:
  enum class Drive { kThread, kSteps };

  explicit LoopbackNetwork(Drive drive);
  // Every transport of the network must be gone.
  ~LoopbackNetwork();
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

  // The network outlives the transport.
  std::unique_ptr<Transport> CreateTransport(TransportOptions options);

  // One round: deliver what is queued, finish sends, expire deadlines. False
  // when there was nothing to do. Drive::kSteps only.
  bool Step();

  // While frozen, the transport that listens on `port` neither sends nor
  // receives, like a stopped process: nobody is told.
  void SetFrozen(uint16_t port, bool frozen);
  // While held, no send becomes final unless its connection closes.
  void HoldSends(bool hold);

 private:
  friend class LoopbackTransport;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_LOOPBACK_TRANSPORT_H_

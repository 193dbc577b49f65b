// The moving parts of a loopback network. Everything marked "driver only"
// belongs to the network's thread, or to whoever calls Step().
#ifndef FARKV_COMMON_TRANSPORT_LOOPBACK_STATE_H_
#define FARKV_COMMON_TRANSPORT_LOOPBACK_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/transport/loopback_transport.h"
#include "common/transport/operation_table.h"

namespace farkv {

struct LoopbackNode;

// The far end of a connection. Driver only.
struct LoopbackFarEnd {
  LoopbackNode* node = nullptr;
  PeerId peer;
};

// One transport as the network sees it.
struct LoopbackNode {
  std::shared_ptr<OperationTable> table;
  const Clock* clock = nullptr;
  absl::Notification detached;
  std::map<PeerId, LoopbackFarEnd> links;  // driver only
};

struct LoopbackPacket {
  LoopbackNode* from = nullptr;
  OperationTable::Outgoing message;
};

struct LoopbackConnect {
  std::shared_ptr<LoopbackNode> from;  // may be detached before its turn
  PeerId peer;
  uint16_t port = 0;
};

struct LoopbackNetwork::State {
  explicit State(Drive how) : drive(how) {}

  bool Step();
  bool RunCommands();
  bool CloseFailed(LoopbackNode* node);
  void Disconnect(LoopbackNode* node, PeerId peer);
  bool FinishSends();
  bool DeliverPackets();
  bool Detach();
  void Main();
  absl::Time NextWake();
  bool IsFrozen(LoopbackNode* node);
  void Wake();

  const Drive drive;
  std::thread thread;
  std::vector<LoopbackPacket> in_flight;  // driver only
  std::vector<LoopbackPacket> arrived;    // driver only: sends to be made final

  absl::Mutex mutex;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool work ABSL_GUARDED_BY(mutex) = false;
  bool hold_sends ABSL_GUARDED_BY(mutex) = false;
  uint16_t next_port ABSL_GUARDED_BY(mutex) = 40000;
  std::vector<std::shared_ptr<LoopbackNode>> nodes ABSL_GUARDED_BY(mutex);
  std::vector<LoopbackNode*> frozen ABSL_GUARDED_BY(mutex);
  std::map<uint16_t, LoopbackNode*> listeners ABSL_GUARDED_BY(mutex);
  // Bounded by the peers of the nodes.
  std::vector<LoopbackConnect> connects ABSL_GUARDED_BY(mutex);
  std::vector<LoopbackNode*> detaching ABSL_GUARDED_BY(mutex);
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_LOOPBACK_STATE_H_

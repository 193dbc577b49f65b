// Decides what happens to the n-th message: a pure function of seed, fault and
// n. Thread-compatible.
#ifndef FARKV_COMMON_TRANSPORT_FAULTS_FAULT_SCHEDULE_H_
#define FARKV_COMMON_TRANSPORT_FAULTS_FAULT_SCHEDULE_H_

#include <cstdint>

#include "common/transport/faults/fault_spec.h"
#include "common/transport/transport.h"

namespace farkv {

// The fate of one message that arrived.
struct Fate {
  bool drop = false;
  bool duplicate = false;
  bool truncate = false;
  bool flip = false;
  bool reorder = false;
  bool delay = false;
  bool stall = false;
  uint64_t where = 0;  // a draw that picks the bit or the length
};

Fate FateOf(const FaultSpec& spec, uint64_t n);

// Flips bit `where`, modulo their number, of the header bytes and the body.
void FlipBit(Message& message, uint64_t where);
// Shortens the body to `where` modulo its size; false when it is empty.
bool TruncateBody(Message& message, uint64_t where);
// A second message with a body of its own.
Message CopyOf(const Message& message);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_FAULTS_FAULT_SCHEDULE_H_

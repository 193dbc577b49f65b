// What the fault decorator injects, as one line of text:
//
//   seed=7,drop=0.01,flip=0.005,delay=0.02:5ms,fail-nth=100,stall=0.001:2s
//
// Probabilities are for each message that arrives. Pure.
#ifndef FARKV_COMMON_TRANSPORT_FAULTS_FAULT_SPEC_H_
#define FARKV_COMMON_TRANSPORT_FAULTS_FAULT_SPEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace farkv {

struct FaultSpec {
  uint64_t seed = 0;
  double drop = 0;       // the message never arrives
  double duplicate = 0;  // a request arrives twice; replies cannot
  double truncate = 0;   // the body ends early
  double flip = 0;       // one bit of header or body is flipped
  double reorder = 0;    // the next message overtakes it
  double delay = 0;      // arrives later by
  absl::Duration delay_for;
  double stall = 0;  // nothing at all arrives for
  absl::Duration stall_for;
  // Each n-th operation submitted fails with UNAVAILABLE, unsent. 0: none.
  uint64_t fail_nth = 0;
};

// Items are separated by commas, each at most once; empty text injects
// nothing. INVALID_ARGUMENT naming the item and what was expected.
absl::StatusOr<FaultSpec> ParseFaultSpec(absl::string_view text);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_FAULTS_FAULT_SPEC_H_

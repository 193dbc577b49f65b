// The normal program: no fault flags, the transport as it is.
#include <utility>

#include "memory_node/fault_hooks.h"

namespace farkv {

struct FaultHooks::Values {};

FaultHooks::FaultHooks() = default;
FaultHooks::~FaultHooks() = default;

const char* FaultHooks::program() const { return "farkv-memory-node"; }

void FaultHooks::Register(Flags&) {}

absl::StatusOr<std::unique_ptr<Transport>> FaultHooks::CreateTransport(
    TransportOptions options, const Make& make, Directory&) const {
  return make(std::move(options));
}

}  // namespace farkv

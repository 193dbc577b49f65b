// farkv-memory-node-faults: flags that make the node misbehave. Tests and
// benches only.
#include "common/telemetry/log.h"
#include "memory_node/corrupting_transport.h"
#include "memory_node/fault_hooks.h"

namespace farkv {

struct FaultHooks::Values {
  bool corrupt_one_row = false;
};

FaultHooks::FaultHooks() : values_(std::make_unique<Values>()) {}
FaultHooks::~FaultHooks() = default;

const char* FaultHooks::program() const { return "farkv-memory-node-faults"; }

void FaultHooks::Register(Flags& flags) {
  flags.AddSwitch("corrupt-one-row", &values_->corrupt_one_row,
                  "FAULT: flip one bit of one stored row");
}

absl::StatusOr<std::unique_ptr<Transport>> FaultHooks::Decorate(
    std::unique_ptr<Transport> transport, Directory& directory) const {
  spdlog::warn("FAULTS ARE LINKED IN: this program is for tests only");
  if (values_->corrupt_one_row) {
    spdlog::warn("FAULT: one stored row will be damaged (--corrupt-one-row)");
    transport = MakeCorruptingTransport(std::move(transport), directory);
  }
  return transport;
}

}  // namespace farkv

// farkv-memory-node-faults: flags that make the node misbehave. Tests and
// benches only.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "common/transport/faults/fault_transport.h"
#include "memory_node/corrupting_transport.h"
#include "memory_node/fault_hooks.h"

namespace farkv {

struct FaultHooks::Values {
  std::string faults;
  bool corrupt_one_row = false;
};

FaultHooks::FaultHooks() : values_(std::make_unique<Values>()) {}
FaultHooks::~FaultHooks() = default;

const char* FaultHooks::program() const { return "farkv-memory-node-faults"; }

void FaultHooks::Register(Flags& flags) {
  flags.AddText("faults", &values_->faults,
                "FAULT: what happens to messages that arrive, as "
                "seed=7,drop=0.01,delay=0.02:5ms");
  flags.AddSwitch("corrupt-one-row", &values_->corrupt_one_row,
                  "FAULT: flip one bit of one stored row");
}

absl::StatusOr<std::unique_ptr<Transport>> FaultHooks::CreateTransport(
    TransportOptions options, const Make& make, Directory& directory) const {
  spdlog::warn("FAULTS ARE LINKED IN: this program is for tests only");
  std::unique_ptr<Transport> transport;
  if (values_->faults.empty()) {
    FARKV_ASSIGN_OR_RETURN(transport, make(std::move(options)));
  } else {
    const absl::StatusOr<FaultSpec> spec = ParseFaultSpec(values_->faults);
    if (!spec.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--faults: ", spec.status().message()));
    }
    spdlog::warn("FAULT: messages that arrive suffer {}", values_->faults);
    FARKV_ASSIGN_OR_RETURN(
        transport, CreateFaultTransport(*spec, std::move(options), make));
  }
  if (values_->corrupt_one_row) {
    spdlog::warn("FAULT: one stored row will be damaged");
    transport = MakeCorruptingTransport(std::move(transport), directory);
  }
  return transport;
}

}  // namespace farkv

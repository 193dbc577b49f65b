// Faults that a node injects into itself, for tests and benches. Which of the
// two implementations a program has is chosen when it is linked:
// fault_hooks_absent.cc in farkv-memory-node has no flag and changes nothing,
// fault_hooks_linked.cc in farkv-memory-node-faults does and says so loudly.
#ifndef FARKV_MEMORY_NODE_FAULT_HOOKS_H_
#define FARKV_MEMORY_NODE_FAULT_HOOKS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/process/flags.h"
#include "common/transport/transport.h"
#include "memory_node/directory/directory.h"

namespace farkv {

class FaultHooks {
 public:
  FaultHooks();
  ~FaultHooks();
  FaultHooks(const FaultHooks&) = delete;
  FaultHooks& operator=(const FaultHooks&) = delete;

  // The name to run under: programs differ in it.
  const char* program() const;
  void Register(Flags& flags);
  // Makes the data plane's transport with `make` and wraps it. `directory`
  // outlives the result. INVALID_ARGUMENT naming flag and value.
  using Make = std::function<absl::StatusOr<std::unique_ptr<Transport>>(
      TransportOptions options)>;
  absl::StatusOr<std::unique_ptr<Transport>> CreateTransport(
      TransportOptions options, const Make& make, Directory& directory) const;

 private:
  struct Values;
  std::unique_ptr<Values> values_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_FAULT_HOOKS_H_

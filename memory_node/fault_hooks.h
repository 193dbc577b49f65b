// Faults that a node injects into itself, for tests and benches. Which of the
// two implementations a program has is chosen when it is linked:
// fault_hooks_absent.cc in farkv-memory-node has no flag and changes nothing,
// fault_hooks_linked.cc in farkv-memory-node-faults does and says so loudly.
#ifndef FARKV_MEMORY_NODE_FAULT_HOOKS_H_
#define FARKV_MEMORY_NODE_FAULT_HOOKS_H_

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
  // Wraps the data plane's transport. `directory` outlives the result.
  absl::StatusOr<std::unique_ptr<Transport>> Decorate(
      std::unique_ptr<Transport> transport, Directory& directory) const;

 private:
  struct Values;
  std::unique_ptr<Values> values_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_FAULT_HOOKS_H_

// Looks at a machine before FarKV runs on it: memory, limits, NUMA, RDMA
// devices, directories, ports, clock and UCX, each with what is wrong and what
// to do about it. It changes nothing.
#ifndef FARKV_ADMIN_CLI_PREFLIGHT_H_
#define FARKV_ADMIN_CLI_PREFLIGHT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace farkv {

// Where facts come from, so that tests can make up a machine.
struct PreflightSystem {
  std::string root;  // stands before every path that is read; no "/" at its end
  // Whether this process may make files in a directory of this machine.
  std::function<bool(const std::string& directory)> can_write;
  // Binds the address for a moment.
  std::function<absl::Status(const std::string& address)> try_listen;
  std::function<std::optional<std::string>(const char* name)> environment;
  std::function<bool()> clock_is_synchronised;
};
PreflightSystem ThisMachine();

// What is going to run here.
struct PreflightOptions {
  uint64_t pool_bytes = 0;  // T1 and T2 together; 0: no memory node
  int32_t numa_node = -1;   // --numa-node of the node
  std::string map_dir;      // empty: no map
  std::string node_id;      // empty: not known yet
  std::string data_device;  // empty: any
  // RDMA is wanted, so that its lack is a failure; this release uses TCP.
  bool rdma = false;
  std::vector<std::string> listen;  // addresses that must be free
};

struct Finding {
  enum class Level { kOk, kWarn, kFail };
  std::string check;
  Level level = Level::kOk;
  std::string found;
  std::string fix;  // empty when ok
};

std::vector<Finding> Preflight(const PreflightOptions& options,
                               const PreflightSystem& system);

// Its parts, in this order.
void CheckMemory(const PreflightOptions& options, const PreflightSystem& system,
                 std::vector<Finding>& findings);
void CheckNuma(const PreflightOptions& options, const PreflightSystem& system,
               std::vector<Finding>& findings);
void CheckNetwork(const PreflightOptions& options,
                  const PreflightSystem& system,
                  std::vector<Finding>& findings);
void CheckMapDirectory(const PreflightOptions& options,
                       const PreflightSystem& system,
                       std::vector<Finding>& findings);
void CheckClock(const PreflightSystem& system, std::vector<Finding>& findings);

// A file under the system's root; empty when it cannot be read. Blanks at the
// end are cut off.
std::string ReadFact(const PreflightSystem& system, const std::string& path);
// Names in a folder under the root, sorted; empty when there is none.
std::vector<std::string> ListFacts(const PreflightSystem& system,
                                   const std::string& folder);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_PREFLIGHT_H_

// How much memory this process can still take.
#ifndef FARKV_MEMORY_NODE_POOL_HOST_MEMORY_H_
#define FARKV_MEMORY_NODE_POOL_HOST_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace farkv {

// The smaller of the machine's available memory and what the process's memory
// control group has left; 0 when neither can be read. `root` replaces / in
// tests.
uint64_t AvailableMemoryBytes(const std::string& root = "");

// RESOURCE_EXHAUSTED naming both when `pool_bytes` is more than `available`,
// so that a node does not die in mid-session; OK when `available` is 0.
absl::Status CheckPoolFits(uint64_t pool_bytes, uint64_t available);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_HOST_MEMORY_H_

// The memory and descriptors that this process can still take. Thread-safe.
#ifndef FARKV_MEMORY_NODE_POOL_HOST_MEMORY_H_
#define FARKV_MEMORY_NODE_POOL_HOST_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace farkv {

// The smaller of the machine's available memory and what the process's memory
// control group has left; 0 when neither can be read. With `huge_pages` also
// what is reserved for 2 MiB pages and free, which the others do not count.
// `root` replaces / in tests.
uint64_t AvailableMemoryBytes(bool huge_pages, const std::string& root = "");

// RESOURCE_EXHAUSTED naming both when `pool_bytes` is more than `available`,
// so that a node does not die in mid-session; OK when `available` is 0.
absl::Status CheckPoolFits(uint64_t pool_bytes, uint64_t available);

// Each slab holds a descriptor. Raises this process's limit on open files as
// far as it may and returns it.
uint64_t RaiseDescriptorLimit();
// RESOURCE_EXHAUSTED naming the slabs, the limit and the bytes that fit when
// `pool_bytes` in slabs of `slab_bytes` need more descriptors than `limit`
// leaves.
absl::Status CheckDescriptorsSuffice(uint64_t pool_bytes, uint64_t slab_bytes,
                                     uint64_t limit);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_HOST_MEMORY_H_

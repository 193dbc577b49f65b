// Slabs of the real node: sealed memfds, huge pages where there are any,
// backed by memory before their first page is given out.
#ifndef FARKV_MEMORY_NODE_POOL_MEMFD_SOURCE_H_
#define FARKV_MEMORY_NODE_POOL_MEMFD_SOURCE_H_

#include <functional>

#include "memory_node/pool/slab_memory.h"

namespace farkv {

struct MemfdSourceOptions {
  bool huge_pages = true;
  int numa_node = -1;  // -1: not bound
  // Told after each slab, on the thread that made it; may be empty.
  std::function<void(size_t bytes, bool huge_pages)> on_slab;
};

SlabSource MakeMemfdSource(MemfdSourceOptions options);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_MEMFD_SOURCE_H_

#include "tests/unit/page/allocation_meter.h"

#include <cstdlib>
#include <new>

namespace {

thread_local size_t allocated_bytes = 0;

}  // namespace

void* operator new(size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace farkv::testing {

size_t AllocatedBytes() { return allocated_bytes; }

}  // namespace farkv::testing

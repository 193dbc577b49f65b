#include "memory_node/pool/slab_memory.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/page/page_format.h"

namespace farkv {

absl::StatusOr<UniqueFd> SlabMemory::DuplicateDescriptor() const {
  if (duplicate_ == nullptr) {
    return absl::FailedPreconditionError("this slab cannot be mapped");
  }
  return duplicate_();
}

absl::StatusOr<SlabMemory> AllocateHeapSlab(size_t bytes) {
  void* memory = std::aligned_alloc(kPageAlignment, bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a slab of ", bytes, " bytes"));
  }
  std::memset(memory, 0, bytes);
  return SlabMemory({static_cast<std::byte*>(memory), bytes}, false, nullptr,
                    [memory] { std::free(memory); });
}

}  // namespace farkv

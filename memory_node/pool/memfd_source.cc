#include "memory_node/pool/memfd_source.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/mapping/memfd_slab.h"

namespace farkv {
namespace {

absl::StatusOr<SlabMemory> MakeSlab(const MemfdSourceOptions& options,
                                    size_t bytes) {
  MemfdSlabOptions slab_options;
  slab_options.size_bytes = bytes;
  slab_options.huge_pages = options.huge_pages;
  slab_options.numa_node = options.numa_node;
  FARKV_ASSIGN_OR_RETURN(MemfdSlab made, MemfdSlab::Create(slab_options));
  FARKV_RETURN_IF_ERROR(made.Prefault([](size_t, size_t) { return true; }));
  const auto slab = std::make_shared<MemfdSlab>(std::move(made));
  const bool huge_pages = slab->pages() == SlabPages::kHugeTlb;
  if (options.on_slab != nullptr) options.on_slab(bytes, huge_pages);
  return SlabMemory(
      {slab->base(), slab->size_bytes()}, huge_pages,
      [slab] { return slab->DuplicateFd(); }, [] {});
}

}  // namespace

SlabSource MakeMemfdSource(MemfdSourceOptions options) {
  return [options = std::move(options)](size_t bytes) {
    return MakeSlab(options, bytes);
  };
}

}  // namespace farkv

// Turns the page table of one sequence into the runs that attention reads,
// and keeps them between steps: only pages that changed are built again.
//
// Every slot that is alive is covered exactly once: by its T0 line while its
// group is resident, else by a cold block (a staging piece or a mapped page).
// Thread-compatible.
#ifndef FARKV_GPU_WORKER_TIERING_RUN_CACHE_H_
#define FARKV_GPU_WORKER_TIERING_RUN_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/page_table.h"
#include "gpu_worker/tiering/selected_rows.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "kernels/attention.h"

namespace farkv {

// Rows of one page and layer outside T0: a block of kv_geometry.h with one row
// for each bit of `slots`, in slot order, for every KV head.
struct ColdBlock {
  int32_t page_index = 0;
  uint64_t slots = 0;
  const std::byte* rows = nullptr;
  RunSource source = RunSource::kStaging;
};

class RunCache {
 public:
  explicit RunCache(const KvGeometry& geometry);

  // The pages of `layer` as they are now, without those of `elsewhere`
  // (ascending page indices). `cold` holds the blocks of every other page with
  // cold slots, ascending, and is borrowed as long as the result: until the
  // next Update of the same layer or any change of `table`. INTERNAL naming
  // page and slots when a cold slot is in no block.
  absl::StatusOr<std::span<const PageRuns>> Update(
      int layer, const PageTable& table, const T0Lines& lines,
      std::span<const ColdBlock> cold, std::span<const int32_t> elsewhere = {});

  // Only what `selected` names, with its bitmaps, and of its pages those that
  // are not elsewhere; borrowed as long as the result. Built anew each time.
  // `cold` holds the blocks of their cold slots.
  absl::StatusOr<std::span<const PageRuns>> Select(
      int layer, const PageTable& table, const T0Lines& lines,
      std::span<const ColdBlock> cold, std::span<const SelectedPage> selected,
      std::span<const int32_t> elsewhere);

 private:
  struct BuiltPage {
    uint64_t version = 0;
    const std::byte* cold_rows = nullptr;
    std::vector<Run> runs;
  };
  struct Layer {
    std::vector<BuiltPage> built;
    std::vector<PageRuns> pages;    // all of them
    std::vector<PageRuns> present;  // without those elsewhere, or selected
    std::vector<std::vector<Run>> selected_runs;
  };

  void Build(int layer, const Page& page, const T0Lines& lines,
             const ColdBlock* cold, std::vector<Run>& runs) const;

  KvGeometry geometry_;
  std::vector<Layer> layers_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_RUN_CACHE_H_

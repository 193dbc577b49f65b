// What a decode step reads when it does not read everything. Plain state of one
// sequence, owned by the engine thread.
#ifndef FARKV_GPU_WORKER_TIERING_SELECTED_ROWS_H_
#define FARKV_GPU_WORKER_TIERING_SELECTED_ROWS_H_

#include <cstdint>
#include <vector>

#include "common/policy/key_bounds.h"

namespace farkv {

// The rows of one page and layer that a step reads; a page without any is not
// named.
struct SelectedPage {
  int32_t page_index = 0;
  uint64_t slots = 0;          // of some KV head
  std::vector<uint64_t> live;  // [KV head], of rows that exist
};

// row_selection.h has what fills it.
struct SequenceSelection {
  // [layer][KV head], of full groups; empty for layers that read everything,
  // and where a scorer of the sequence's own decides.
  std::vector<std::vector<KeyBounds>> bounds;
  // [layer], ascending pages, of the step at hand.
  std::vector<std::vector<SelectedPage>> chosen;
  // Groups that the step at hand has read, or passed over, all KV heads.
  int64_t step_selected = 0, step_skipped = 0;

  // Null when the step reads nothing of the page in that layer.
  const SelectedPage* Find(int layer, int32_t page_index) const;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_SELECTED_ROWS_H_

// Cold rows of layers in which a step reads some rows only: nobody knows which
// before the layer's queries are there, so nothing is asked for ahead.
#include <algorithm>

#include "common/base/status_macros.h"
#include "gpu_worker/tiering/cold_reads.h"

namespace farkv {
namespace {

// Of the cold pages of `sequence` those that have chosen rows which are cold.
std::vector<ReadPage> SelectedPages(const Sequence& sequence, int layer) {
  std::vector<ReadPage> pages;
  for (ReadPage page : sequence.reads.pages) {
    const SelectedPage* chosen =
        sequence.selection.Find(layer, page.page_index);
    if (chosen == nullptr) continue;
    page.slots &= chosen->slots;
    if (page.slots != 0) pages.push_back(page);
  }
  return pages;
}

}  // namespace

absl::StatusOr<std::span<const std::vector<ColdBlock>>>
ColdReads::SelectedLayer(int layer, Stream& stream,
                         std::vector<SequenceId>& failed) {
  if (!HasPages()) return std::span<const std::vector<ColdBlock>>();
  for (StepPart& part : parts_) {
    if (!part.Selects(layer)) continue;
    SequenceReads& reads = part.sequence->reads;
    reads.selected = SelectedPages(*part.sequence, layer);
    FetchLayer(*part.sequence, layer, reads.selected,
               reads.layers[static_cast<size_t>(layer)]);
    NoteStaging(*part.sequence);
  }
  absl::Status status;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].Selects(layer)) continue;
    Sequence& sequence = *parts_[i].sequence;
    status.Update(CollectBlocks(sequence, layer, sequence.reads.selected,
                                blocks_[i], failed));
  }
  FARKV_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].Selects(layer)) continue;
    FARKV_RETURN_IF_ERROR(MoveToDevice(blocks_[i], stream));
  }
  return std::span<const std::vector<ColdBlock>>(blocks_);
}

}  // namespace farkv

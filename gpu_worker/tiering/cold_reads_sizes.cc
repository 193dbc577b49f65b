// How much a step fetches at a time. The rows of the computing layer are in
// memory together, whatever staging allows: what the transport would refuse is
// refused before anything is asked for.
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/parse.h"
#include "common/page/page_format.h"
#include "gpu_worker/tiering/cold_reads.h"

namespace farkv {

// What `node` sends of a layer that reads every row.
uint64_t ColdReads::LayerBytes(const Sequence& sequence, int node) const {
  uint64_t bytes = 0;
  for (const ReadPage& page : sequence.reads.pages) {
    if (page.way != ReadWay::kFetch || page.node != node) continue;
    const PagePlace& place =
        sequence.remote.pages[static_cast<size_t>(page.page_index)]
            .places.front();
    bytes += place.tier == Tier::kT2
                 ? static_cast<uint64_t>(geometry_.num_kv_heads) *
                       T2HeadLayout::Of(geometry_, place.t2_bits).head_bytes
                 : geometry_.BlockBytes(
                       static_cast<size_t>(std::popcount(page.slots)));
  }
  return bytes;
}

absl::Status ColdReads::CheckLayerFits() const {
  for (const auto& link : links_) {
    uint64_t bytes = 0;
    size_t sequences = 0;
    const StepPart* last = nullptr;
    for (const StepPart& part : parts_) {
      // One that selects in every layer reads what its budget allows.
      if (part.Selects(0)) continue;
      const uint64_t more = LayerBytes(*part.sequence, link->index());
      if (more == 0) continue;
      bytes += more;
      ++sequences;
      last = &part;
    }
    if (bytes <= options_.max_layer_fetch_bytes) continue;
    const std::string who =
        sequences == 1
            ? absl::StrCat("sequence ", last->sequence->spec.request_id)
            : absl::StrCat(sequences, " sequences");
    return absl::OutOfRangeError(absl::StrCat(
        who, " would fetch ", FormatBytes(bytes), " of one layer from node ",
        link->node_id(), " in one step, which may be ",
        FormatBytes(options_.max_layer_fetch_bytes), " at most"));
  }
  return absl::OkStatus();
}

}  // namespace farkv

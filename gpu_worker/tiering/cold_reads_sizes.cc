// How much a step fetches at a time. The rows of the computing layer are in
// memory together, whatever staging allows: what the transport would refuse is
// refused before anything is asked for.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "gpu_worker/tiering/cold_reads.h"

namespace farkv {

// What the sequence itself has on its way or in staging, promotions included.
void ColdReads::NoteStaging(Sequence& sequence) {
  uint64_t bytes = 0;
  for (const auto& fetch : sequence.promotion.fetches) bytes += fetch->bytes();
  for (const auto& layer : sequence.reads.layers) {
    for (const auto& fetch : layer) bytes += fetch->bytes();
  }
  int64_t& peak = sequence.stats.staging_peak_bytes;
  peak = std::max(peak, static_cast<int64_t>(bytes));
}

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

// What no step may fetch can only be attended to: the node is asked even while
// it is left alone for a failure, and the step's repetitions are its tries.
void ColdReads::LeaveToNodes(Sequence& sequence,
                             const std::vector<bool>& able) const {
  for (const auto& link : links_) {
    if (!able[static_cast<size_t>(link->index())] ||
        LayerBytes(sequence, link->index()) <= options_.max_layer_fetch_bytes) {
      continue;
    }
    for (ReadPage& page : sequence.reads.pages) {
      if (page.node == link->index()) page.way = ReadWay::kAttend;
    }
  }
}

// Rows that are lost are recomputed, however many they are, so this comes
// before the question how many can be fetched.
absl::Status ColdReads::CheckRowsAreThere(
    std::vector<SequenceId>& failed) const {
  std::vector<bool> healthy;
  for (const auto& link : links_) healthy.push_back(link->healthy());
  absl::Status status;
  for (const StepPart& part : parts_) {
    // One that selects may need none of them.
    if (part.Selects(0)) continue;
    const absl::Status lost = CheckReads(*part.sequence, healthy);
    if (!lost.ok()) failed.push_back(part.sequence->id);
    status.Update(lost);
  }
  return status;
}

// Whether pages of `node` that are mapped were listed to be fetched, their
// lease being over then.
bool ColdReads::FetchesMapped(const Sequence& sequence, int node) const {
  const auto& pages = sequence.reads.pages;
  return std::any_of(pages.begin(), pages.end(), [&](const ReadPage& page) {
    return page.way == ReadWay::kFetch && page.node == node &&
           sequence.remote.pages[static_cast<size_t>(page.page_index)]
                   .places.front()
                   .map.data != nullptr;
  });
}

absl::Status ColdReads::CheckReads(Sequence& sequence,
                                   const std::vector<bool>& healthy) const {
  for (const ReadPage& read : sequence.reads.pages) {
    FARKV_RETURN_IF_ERROR(CheckPlace(sequence, read));
    if (healthy[static_cast<size_t>(read.node)]) continue;
    sequence.loss.nodes.insert(read.node);
    return absl::UnavailableError(
        absl::StrCat(Where(sequence, *links_[static_cast<size_t>(read.node)], 0,
                           read.page_index),
                     ": the node is lost"));
  }
  // Rows that were read in place, and are too many to be fetched now.
  for (const auto& link : links_) {
    if (LayerBytes(sequence, link->index()) <= options_.max_layer_fetch_bytes) {
      continue;
    }
    if (LeaseHolds(sequence, link->index())) {
      if (!FetchesMapped(sequence, link->index())) continue;
      return absl::AbortedError(absl::StrCat(
          "sequence ", sequence.spec.request_id, ", node ", link->node_id(),
          ": the lease was renewed while its pages were listed"));
    }
    sequence.loss.nodes.insert(link->index());
    return absl::UnavailableError(
        absl::StrCat("sequence ", sequence.spec.request_id, ", node ",
                     link->node_id(), ": the lease is over"));
  }
  return absl::OkStatus();
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

// Cold reads in place: the checks around reading another process's memory.
#include <atomic>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "gpu_worker/tiering/cold_reads.h"

namespace farkv {

bool ColdReads::LeaseHolds(const Sequence& sequence, int node) const {
  const auto& session =
      sequence.remote.nodes[static_cast<size_t>(node)].session;
  return session != nullptr && session->Usable(clock_.Now());
}

// Header and rows at the first use of a page's generation, afterwards the
// generation.
absl::Status ColdReads::CheckMapped(Sequence& sequence, const ReadPage& read,
                                    int layer) {
  RemotePage& remote =
      sequence.remote.pages[static_cast<size_t>(read.page_index)];
  PagePlace& place = remote.places[static_cast<size_t>(layer)];
  const Generation generation = LoadPageGeneration(place.map.data);
  if (generation != place.generation) {
    return absl::UnavailableError(absl::StrCat("the page has generation ",
                                               generation.value, ", not ",
                                               place.generation.value));
  }
  if (place.verified) return absl::OkStatus();
  PageIdentity identity;
  identity.session = sequence.spec.session;
  identity.layer = layer;
  identity.page_index = read.page_index;
  identity.generation = place.generation;
  if (!options_.skip_row_checks) {
    FARKV_RETURN_IF_ERROR(CheckPageHeader(place.map.data, geometry_, identity));
    const std::vector<uint64_t> rows(
        static_cast<size_t>(geometry_.num_kv_heads), ~uint64_t{0});
    FARKV_RETURN_IF_ERROR(CheckPageRows(place.map.data, geometry_, rows));
  }
  place.verified = true;
  return absl::OkStatus();
}

// The whole page is the block, whichever of its rows are cold. A page that may
// not be read in place is asked for when it is read again: its node may have
// good rows, and knows about its leases itself.
absl::StatusOr<ColdBlock> ColdReads::MappedBlock(Sequence& sequence,
                                                 const ReadPage& read,
                                                 int layer) {
  const NodeLink& link = *links_[static_cast<size_t>(read.node)];
  const std::string where = Where(sequence, link, layer, read.page_index);
  if (!link.healthy()) {
    sequence.loss.nodes.insert(read.node);
    return absl::UnavailableError(absl::StrCat(where, ": the node is lost"));
  }
  if (!LeaseHolds(sequence, read.node)) {
    return absl::AbortedError(absl::StrCat(where, ": the lease is over"));
  }
  RemotePage& remote =
      sequence.remote.pages[static_cast<size_t>(read.page_index)];
  if (absl::Status s = CheckMapped(sequence, read, layer); !s.ok()) {
    for (PagePlace& place : remote.places) place.map = MappedPage();
    return absl::AbortedError(absl::StrCat(where, ": ", s.message()));
  }
  return ColdBlock{read.page_index, ~uint64_t{0},
                   remote.places[static_cast<size_t>(layer)].map.data +
                       PageLayout::T1(geometry_).header_bytes,
                   RunSource::kMappedPage};
}

absl::Status ColdReads::CheckPlace(const Sequence& sequence,
                                   const ReadPage& read) {
  const Page& page = sequence.table.page(read.page_index);
  if (page.state != StoreState::kLost && read.node >= 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("sequence ", sequence.spec.request_id, ", page ",
                   read.page_index, ": its node has lost it"));
}

absl::Status ColdReads::AddMapped(Sequence& sequence, int layer,
                                  std::span<const ReadPage> pages,
                                  std::vector<ColdBlock>& blocks) {
  absl::Status aborted;  // once for all pages of the layer
  for (const ReadPage& read : pages) {
    FARKV_RETURN_IF_ERROR(CheckPlace(sequence, read));
    if (read.way != ReadWay::kMap) continue;
    const absl::StatusOr<ColdBlock> block = MappedBlock(sequence, read, layer);
    if (absl::IsAborted(block.status())) {
      aborted.Update(block.status());
      continue;
    }
    FARKV_RETURN_IF_ERROR(block.status());
    blocks.push_back(*block);
    const int64_t rows =
        std::popcount(read.slots) * int64_t{geometry_.num_kv_heads};
    sequence.stats.cold_rows_mapped += rows;
    sequence.CountReads(read.node, rows);
    sequence.stats.cold_mode = "map";
  }
  return aborted;
}

absl::Status ColdReads::Recheck() const {
  for (const StepPart& part : parts_) {
    FARKV_RETURN_IF_ERROR(
        RecheckMapped(*part.sequence, part.sequence->reads.pages));
  }
  return absl::OkStatus();
}

absl::Status ColdReads::RecheckMapped(const Sequence& sequence,
                                      std::span<const ReadPage> pages) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  for (const ReadPage& read : pages) {
    if (read.way != ReadWay::kMap) continue;
    const RemotePage& remote =
        sequence.remote.pages[static_cast<size_t>(read.page_index)];
    bool fits = LeaseHolds(sequence, read.node);
    for (const PagePlace& place : remote.places) {
      fits = fits && place.map.data != nullptr &&
             LoadPageGeneration(place.map.data) == place.generation;
    }
    if (fits) continue;
    return absl::AbortedError(absl::StrCat(
        "sequence ", sequence.spec.request_id, ", page ", read.page_index,
        ": the page or its lease changed while its rows were read"));
  }
  return absl::OkStatus();
}

}  // namespace farkv

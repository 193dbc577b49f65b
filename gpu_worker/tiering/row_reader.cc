#include "gpu_worker/tiering/row_reader.h"

#include <bit>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "kernels/elementwise.h"

namespace farkv {

RowReader::RowReader(Sequence& sequence, const T0Lines& lines,
                     const KvGeometry& geometry, Stream& stream,
                     ColdReads* reads, absl::Duration layer_timeout)
    : sequence_(sequence),
      lines_(lines),
      geometry_(geometry),
      stream_(stream),
      reads_(reads),
      layer_timeout_(layer_timeout),
      pages_(static_cast<size_t>(sequence.table.num_pages())) {
  if (reads_ != nullptr) cold_pages_ = reads_->ColdPages(sequence_);
}

absl::Status RowReader::Load(int layer) {
  for (PageRows& page : pages_) page = PageRows();
  if (!cold_pages_.empty()) {
    FARKV_RETURN_IF_ERROR(LoadCold(layer));
  }
  LoadLines(layer);
  return absl::OkStatus();
}

void RowReader::LoadResident(int layer) {
  for (PageRows& page : pages_) page = PageRows();
  LoadLines(layer);
}

absl::Status RowReader::LoadCold(int layer) {
  const absl::Time deadline = Clock::Boottime().Now() + layer_timeout_;
  fetches_.clear();
  if (next_layer_ == layer) {
    fetches_ = std::exchange(next_fetches_, {});
  }
  if (fetches_.empty()) {
    reads_->FetchLayer(sequence_, layer, cold_pages_, fetches_);
  }
  FetchAhead(layer + 1);
  std::vector<ColdBlock> blocks;
  FARKV_RETURN_IF_ERROR(reads_->AwaitLayer(sequence_, layer, cold_pages_,
                                           fetches_, deadline, blocks));
  for (const ColdBlock& block : blocks) {
    PageRows& page = pages_[static_cast<size_t>(block.page_index)];
    page.cold = block.rows;
    page.cold_slots = block.slots;
  }
  return absl::OkStatus();
}

void RowReader::FetchAhead(int layer) {
  next_layer_ = -1;
  if (layer >= geometry_.num_layers) return;
  uint64_t bytes = 0;
  for (const ReadPage& page : cold_pages_) {
    bytes +=
        geometry_.BlockBytes(static_cast<size_t>(std::popcount(page.slots)));
  }
  if (!reads_->HasRoomAhead(bytes, 1)) return;
  next_layer_ = layer;
  reads_->FetchLayer(sequence_, layer, cold_pages_, next_fetches_);
}

void RowReader::LoadLines(int layer) {
  const int g = lines_.granularity();
  const size_t bytes = geometry_.BlockBytes(static_cast<size_t>(g));
  const bool in_place = stream_.kind() == DeviceKind::kCpu;
  if (!in_place && copies_ == nullptr) {
    copies_ = NewHostRows(static_cast<size_t>(sequence_.table.resident_sets()) *
                          bytes);
  }
  std::vector<CopyPiece> pieces;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const Page& page = sequence_.table.page(static_cast<int>(i));
    pages_[i].lines.resize(page.lines.size());
    for (size_t group = 0; group < page.lines.size(); ++group) {
      if (page.lines[group] == kNoLineSet) continue;
      const std::byte* line = lines_.Line(layer, page.lines[group]);
      if (!in_place) {
        std::byte* copy = copies_.get() + pieces.size() * bytes;
        pieces.push_back({copy, line, bytes});
        line = copy;
      }
      pages_[i].lines[group] = line;
    }
  }
  if (pieces.empty()) return;
  CopyPieces(stream_, pieces);
  stream_.Synchronize();
}

RowReader::Place RowReader::Find(int64_t position) const {
  const auto index = static_cast<size_t>(position / kPageTokens);
  const int slot = static_cast<int>(position % kPageTokens);
  const PageRows& page = pages_[index];
  const auto g = static_cast<size_t>(lines_.granularity());
  const auto at = static_cast<size_t>(slot);
  if (const std::byte* line = page.lines[at / g]; line != nullptr) {
    return {line, g, at % g};
  }
  return {
      page.cold, static_cast<size_t>(std::popcount(page.cold_slots)),
      static_cast<size_t>(std::popcount(page.cold_slots & SlotMask(0, slot)))};
}

const std::byte* RowReader::Key(int head, int64_t position) const {
  const Place place = Find(position);
  return place.block +
         geometry_.KeyOffset(place.rows, static_cast<size_t>(head), place.row);
}

const std::byte* RowReader::Value(int head, int64_t position) const {
  const Place place = Find(position);
  return place.block + geometry_.ValueOffset(
                           place.rows, static_cast<size_t>(head), place.row);
}

absl::Status RowReader::Recheck() const {
  return reads_ == nullptr ? absl::OkStatus()
                           : reads_->RecheckMapped(sequence_, cold_pages_);
}

}  // namespace farkv

#include "memory_node/data/head_row_reader.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "memory_node/data/t2_rows.h"

namespace farkv {
namespace {

int32_t PageOf(int64_t position) {
  return static_cast<int32_t>(position / kPageTokens);
}

size_t SlotOf(int64_t position) {
  return static_cast<size_t>(position % kPageTokens);
}

uint64_t SlotsOf(std::span<const int64_t> positions) {
  uint64_t slots = 0;
  for (const int64_t position : positions) {
    slots |= uint64_t{1} << SlotOf(position);
  }
  return slots;
}

// Calls visit(first, count) for each run of rows to be read that share a page,
// and skip(index) for each row that is not read; ascending.
template <typename Visit, typename Skip>
absl::Status ForEachPage(const HeadRows& rows, const VectorsRead& read,
                         Visit visit, Skip skip) {
  const size_t count = rows.positions.size();
  const auto is_read = [&](size_t i) {
    return read.of_kept_rows || rows.pinned[i] == 0;
  };
  for (size_t i = 0; i < count;) {
    if (!is_read(i)) {
      skip(i++);
      continue;
    }
    const int32_t page = PageOf(rows.positions[i]);
    size_t end = i + 1;
    while (end < count && is_read(end) && PageOf(rows.positions[end]) == page) {
      ++end;
    }
    FARKV_RETURN_IF_ERROR(visit(i, end - i));
    i = end;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<RowsWanted> RowsToRead(const EvictionHead& head,
                                   const HeadRows& rows,
                                   const VectorsRead& read) {
  // An item without rows has the head itself checked.
  std::vector<RowsWanted> wanted = {{{head.layer, 0}, head.kv_head, 0}};
  ForEachPage(
      rows, read,
      [&](size_t first, size_t count) {
        const auto positions = std::span(rows.positions).subspan(first, count);
        const PageName page{head.layer, PageOf(positions.front())};
        if (wanted.back().page != page) {
          wanted.push_back({page, head.kv_head, 0});
        }
        wanted.back().rows |= SlotsOf(positions);
        return absl::OkStatus();
      },
      [](size_t) {})
      .IgnoreError();
  return wanted;
}

HeadRowReader::HeadRowReader(const ReadTicket& ticket, const EvictionHead& head)
    : ticket_(ticket),
      layer_(head.layer),
      kv_head_(head.kv_head),
      zero_(ticket.geometry.VectorBytes()) {}

absl::Status HeadRowReader::Read(const HeadRows& rows,
                                 const VectorsRead& read) {
  if (!read.keys && !read.values) return absl::OkStatus();
  keys_.reserve(rows.positions.size());
  values_.reserve(rows.positions.size());
  return ForEachPage(
      rows, read,
      [&](size_t first, size_t count) {
        return ReadPage(std::span(rows.positions).subspan(first, count));
      },
      [&](size_t) {
        keys_.push_back(zero_.data());
        values_.push_back(zero_.data());
      });
}

absl::Status HeadRowReader::ReadPage(std::span<const int64_t> positions) {
  const PageName name{layer_, PageOf(positions.front())};
  const auto page = std::lower_bound(
      ticket_.pages.begin(), ticket_.pages.end(), name,
      [](const PageRead& read, const PageName& n) { return read.page < n; });
  if (page->tier == Tier::kT2) return ReadT2Page(*page, positions);
  ReadT1Page(*page, positions);
  return absl::OkStatus();
}

void HeadRowReader::ReadT1Page(const PageRead& page,
                               std::span<const int64_t> positions) {
  const KvGeometry& g = ticket_.geometry;
  const std::byte* rows = page.pin.data() + PageLayout::T1(g).header_bytes;
  const auto head = static_cast<size_t>(kv_head_);
  for (const int64_t position : positions) {
    const size_t slot = SlotOf(position);
    keys_.push_back(rows + g.KeyOffset(kPageTokens, head, slot));
    values_.push_back(rows + g.ValueOffset(kPageTokens, head, slot));
  }
}

absl::Status HeadRowReader::ReadT2Page(const PageRead& page,
                                       std::span<const int64_t> positions) {
  const KvGeometry& g = ticket_.geometry;
  const size_t bytes = positions.size() * g.VectorBytes();
  // Not zeroed: every byte is written below.
  decoded_.emplace_back(new std::byte[2 * bytes]);
  std::byte* keys = decoded_.back().get();
  std::byte* values = keys + bytes;
  FARKV_RETURN_IF_ERROR(DecodeT2Slots(g, page.t2_bits, kv_head_,
                                      page.pin.data(), SlotsOf(positions), keys,
                                      values));
  const auto count = static_cast<int64_t>(positions.size());
  AppendRows(keys, g.VectorBytes(), count, keys_);
  AppendRows(values, g.VectorBytes(), count, values_);
  return absl::OkStatus();
}

}  // namespace farkv

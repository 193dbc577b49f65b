#include "gpu_worker/tiering/page_table.h"

#include <algorithm>
#include <bit>

namespace farkv {
namespace {

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t PageTable::SetsFor(int num_rows) const {
  return DivideUp(num_tokens_ + num_rows, granularity_) -
         DivideUp(num_tokens_, granularity_);
}

void PageTable::AddWritten(Page& page, uint64_t slots) {
  page.written |= slots;
  page.alive |= slots;
  for (uint64_t& live : page.live) live |= slots;
  page.version = ++last_version_;
}

void PageTable::RemoveWritten(Page& page, uint64_t slots) {
  page.written &= ~slots;
  page.alive &= ~slots;
  for (uint64_t& live : page.live) live &= ~slots;
  page.version = ++last_version_;
}

int64_t PageTable::Keep(Page& page, std::span<const uint64_t> live) {
  int64_t destroyed = 0;
  uint64_t alive = 0;
  for (size_t i = 0; i < page.live.size(); ++i) {
    const uint64_t kept = page.live[i] & live[i];
    destroyed += std::popcount(page.live[i] & ~kept);
    page.live[i] = kept;
    alive |= kept;
  }
  if (destroyed == 0) return 0;
  page.alive = alive;
  page.eviction_due = true;
  page.version = ++last_version_;
  return destroyed;
}

void PageTable::Append(int num_rows, T0Lines& lines) {
  const int64_t end = num_tokens_ + num_rows;
  while (num_tokens_ < end) {
    const auto index = static_cast<int32_t>(num_tokens_ / kPageTokens);
    const int first = static_cast<int>(num_tokens_ % kPageTokens);
    if (index == num_pages()) {
      auto fresh = std::make_unique<Page>();
      fresh->index = index;
      fresh->lines.assign(static_cast<size_t>(kPageTokens / granularity_),
                          kNoLineSet);
      fresh->live.assign(static_cast<size_t>(geometry_.num_layers) *
                             static_cast<size_t>(geometry_.num_kv_heads),
                         0);
      pages_.push_back(std::move(fresh));
    }
    Page& last = page(index);
    const int count = static_cast<int>(
        std::min<int64_t>(kPageTokens - first, end - num_tokens_));
    for (int slot = first; slot < first + count; ++slot) {
      if ((last.resident >> slot & 1) == 0) Adopt(last, slot, lines.Allocate());
    }
    AddWritten(last, SlotMask(first, count));
    num_tokens_ += count;
  }
}

void PageTable::Truncate(int64_t num_tokens, T0Lines& lines) {
  const auto keep_pages = DivideUp(num_tokens, kPageTokens);
  for (int64_t i = keep_pages; i < num_pages(); ++i) {
    Page& gone = page(static_cast<int>(i));
    for (int slot = 0; slot < kPageTokens; slot += granularity_) {
      Drop(gone, slot, lines);
    }
  }
  pages_.resize(static_cast<size_t>(keep_pages));
  num_tokens_ = num_tokens;
  const int rest = static_cast<int>(num_tokens % kPageTokens);
  if (rest == 0) return;
  Page& last = page(static_cast<int>(keep_pages - 1));
  RemoveWritten(last, ~SlotMask(0, rest));
  for (int slot = 0; slot < kPageTokens; slot += granularity_) {
    if (slot >= rest) Drop(last, slot, lines);
  }
}

void PageTable::Drop(Page& page, int slot, T0Lines& lines) {
  LineSetId& set = page.lines[static_cast<size_t>(slot / granularity_)];
  if (set == kNoLineSet) return;
  lines.Free(set);
  set = kNoLineSet;
  page.resident &= ~GroupMask(slot);
  --resident_sets_;
  page.version = ++last_version_;
}

void PageTable::Adopt(Page& page, int slot, LineSetId set) {
  page.lines[static_cast<size_t>(slot / granularity_)] = set;
  page.resident |= GroupMask(slot);
  ++resident_sets_;
  page.version = ++last_version_;
}

void PageTable::Clear(T0Lines& lines) { Truncate(0, lines); }

}  // namespace farkv

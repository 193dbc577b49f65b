#include "memory_node/data/scrubber.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "memory_node/data/row_copy.h"

namespace farkv {
namespace {

constexpr absl::Duration kLongestSleep = absl::Milliseconds(100);

// Heads of a T2 page whose checksum is wrong, one by one.
uint64_t CountT2Mismatches(const StoredPage& page) {
  const int bits = page.identity.t2_bits;
  if (CheckT2Heads(page.pin.data(), page.geometry, bits).ok()) return 0;
  const PageHeader header(page.pin.data(), page.geometry);
  const std::byte* part =
      page.pin.data() + PageLayout::T2(page.geometry, bits).header_bytes;
  const size_t bytes = T2HeadLayout::Of(page.geometry, bits).head_bytes;
  uint64_t mismatches = 0;
  for (int head = 0; head < page.geometry.num_kv_heads; ++head) {
    if (Crc32c({part, bytes}) != header.row_crc(head, 0)) ++mismatches;
    part += bytes;
  }
  return mismatches;
}

// Rows of the page whose checksum is wrong, one by one.
uint64_t CountMismatches(const StoredPage& page) {
  if (page.identity.tier == Tier::kT2) return CountT2Mismatches(page);
  if (CheckPageRows(page.pin.data(), page.geometry, page.rows).ok()) return 0;
  uint64_t mismatches = 0;
  std::vector<uint64_t> one(page.rows.size(), 0);
  for (size_t head = 0; head < one.size(); ++head) {
    for (uint64_t left = page.rows[head]; left != 0; left &= left - 1) {
      one[head] = left & (~left + 1);
      if (!CheckPageRows(page.pin.data(), page.geometry, one).ok()) {
        ++mismatches;
      }
    }
    one[head] = 0;
  }
  return mismatches;
}

size_t BytesToRead(const StoredPage& page) {
  if (page.identity.tier == Tier::kT2) {
    return PageLayout::T2(page.geometry, page.identity.t2_bits).payload_bytes;
  }
  return NumRows(page.rows) * page.geometry.RowBytes();
}

// In pieces, so that a caller that has gone is noticed soon.
void SleepUnlessCancelled(absl::Duration left,
                          const std::function<bool()>& cancelled) {
  while (left > absl::ZeroDuration() && !cancelled()) {
    const absl::Duration piece = std::min(left, kLongestSleep);
    absl::SleepFor(piece);
    left -= piece;
  }
}

}  // namespace

absl::StatusOr<ScrubResult> Scrubber::Run(
    const std::optional<SessionId>& session,
    const std::function<bool()>& cancelled) {
  ScrubResult result;
  if (session.has_value()) {
    FARKV_RETURN_IF_ERROR(ScrubSession(*session, cancelled, result));
    return result;
  }
  SessionId after;
  for (;;) {
    const std::vector<SessionReport> next = directory_.List(after, 1);
    if (next.empty()) return result;
    after = next.front().id;
    absl::Status status = ScrubSession(after, cancelled, result);
    if (absl::IsCancelled(status)) return status;
  }
}

absl::Status Scrubber::ScrubSession(const SessionId& session,
                                    const std::function<bool()>& cancelled,
                                    ScrubResult& result) {
  FARKV_ASSIGN_OR_RETURN(const std::vector<PageReport> pages,
                         directory_.DescribePages(session));
  for (const PageReport& report : pages) {
    if (!report.stored) continue;
    if (cancelled()) return absl::CancelledError("the caller has gone");
    const absl::Time start = absl::Now();
    size_t bytes = 0;
    {
      absl::StatusOr<StoredPage> page =
          directory_.PinStored(session, report.page);
      if (!page.ok()) continue;
      ScrubPage(*page, result);
      bytes = BytesToRead(*page);
    }
    const absl::Duration due = absl::Seconds(
        static_cast<double>(bytes) / static_cast<double>(bytes_per_second_));
    SleepUnlessCancelled(due - (absl::Now() - start), cancelled);
  }
  return absl::OkStatus();
}

void Scrubber::ScrubPage(const StoredPage& page, ScrubResult& result) {
  ++result.pages;
  result.rows += NumRows(page.rows);
  uint64_t mismatches = CountMismatches(page);
  if (!CheckPageHeader(page.pin.data(), page.geometry, page.identity).ok()) {
    ++mismatches;
  }
  result.mismatches += mismatches;
  checksum_failures_.Increment(static_cast<double>(mismatches));
}

}  // namespace farkv

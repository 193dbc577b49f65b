#include "memory_node/data/fetch_handler.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "memory_node/data/row_copy.h"

namespace farkv {
namespace {

std::vector<PageWanted> Wanted(const std::vector<FetchItem>& items) {
  std::vector<PageWanted> wanted;
  wanted.reserve(items.size());
  for (const FetchItem& item : items) {
    wanted.push_back({item.page_index, item.generation, item.rows});
  }
  return wanted;
}

// A node holds T1 pages only: whoever takes a page for another kind has a
// stale view of it.
void RefuseOtherTiers(const std::vector<FetchItem>& items,
                      std::vector<absl::StatusOr<PagePin>>& pins) {
  for (size_t i = 0; i < items.size(); ++i) {
    const FetchItem& item = items[i];
    if (!pins[i].ok() || (item.tier == Tier::kT1 && item.t2_bits == 0)) {
      continue;
    }
    pins[i] = absl::FailedPreconditionError(absl::StrCat(
        "page ", item.page_index, " is asked for as tier ",
        static_cast<int>(item.tier), " of ", item.t2_bits,
        " T2 bits, it is tier ", static_cast<int>(Tier::kT1), " of 0"));
  }
}

// A reply item per page; the rows of those that cannot be read are zero.
std::vector<FetchReplyItem> ReplyItems(
    const std::vector<FetchItem>& items,
    const std::vector<absl::StatusOr<PagePin>>& pins, DataMetrics& metrics) {
  std::vector<FetchReplyItem> replies;
  replies.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    FetchReplyItem& reply = replies.emplace_back();
    reply.page_index = items[i].page_index;
    reply.generation = items[i].generation;
    reply.tier = items[i].tier;
    reply.t2_bits = items[i].t2_bits;
    reply.code = pins[i].status().code();
    if (pins[i].ok()) {
      reply.rows = items[i].rows;
    } else {
      reply.rows.assign(items[i].rows.size(), 0);
      metrics.fetch.CountFailure(reply.code);
    }
  }
  return replies;
}

}  // namespace

absl::StatusOr<FetchedRows> FetchPages(Directory& directory,
                                       const DataCaller& caller, int32_t layer,
                                       std::span<const std::byte> body,
                                       DataMetrics& metrics) {
  FARKV_ASSIGN_OR_RETURN(const KvGeometry geometry,
                         directory.CheckCaller(caller));
  FARKV_ASSIGN_OR_RETURN(const std::vector<FetchItem> items,
                         DecodeFetchRequest(body));
  std::vector<absl::StatusOr<PagePin>> pins =
      directory.BeginFetch(caller, layer, Wanted(items));
  RefuseOtherTiers(items, pins);
  FetchReply reply;
  reply.geometry = geometry;
  reply.items = ReplyItems(items, pins, metrics);
  std::vector<FetchReplyItem>& replies = reply.items;
  size_t rows = 0;
  for (const FetchReplyItem& item : replies) rows += NumRows(item.rows);
  FetchedRows fetched;
  fetched.row_bytes = rows * geometry.RowBytes();
  if (fetched.row_bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a fetch of ", fetched.row_bytes, " bytes; one reply has ",
                     "at most ", kMaxMessageBytes));
  }
  // Not zeroed: every byte is written below.
  fetched.rows.reset(new std::byte[fetched.row_bytes]);
  std::byte* to = fetched.rows.get();
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!pins[i].ok()) continue;
    replies[i].row_crcs.reserve(NumRows(replies[i].rows));
    GatherRows(geometry, replies[i].rows, pins[i]->data(), to,
               replies[i].row_crcs);
    to += replies[i].row_crcs.size() * geometry.RowBytes();
  }
  FARKV_ASSIGN_OR_RETURN(fetched.head, EncodeFetchReply(reply));
  return fetched;
}

}  // namespace farkv

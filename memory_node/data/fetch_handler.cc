#include "memory_node/data/fetch_handler.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "memory_node/data/row_copy.h"
#include "memory_node/data/t2_rows.h"

namespace farkv {
namespace {

std::vector<PageWanted> Wanted(const std::vector<FetchItem>& items) {
  std::vector<PageWanted> wanted;
  wanted.reserve(items.size());
  for (const FetchItem& item : items) {
    wanted.push_back(
        {item.page_index, item.generation, item.rows, item.tier, item.t2_bits});
  }
  return wanted;
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

void Gather(const KvGeometry& geometry, FetchReplyItem& item, std::byte* page,
            std::byte* to) {
  if (item.tier == Tier::kT2) {
    GatherT2Heads(geometry, item.t2_bits, item.rows, page, to, item.row_crcs);
    return;
  }
  item.row_crcs.reserve(NumRows(item.rows));
  GatherRows(geometry, item.rows, page, to, item.row_crcs);
}

}  // namespace

absl::StatusOr<FetchedRows> FetchPages(Directory& directory,
                                       const DataCaller& caller, int32_t layer,
                                       std::span<const std::byte> body,
                                       RowMemory memory, DataMetrics& metrics) {
  FARKV_ASSIGN_OR_RETURN(const CalledSession session,
                         directory.CheckCaller(caller));
  const KvGeometry& geometry = session.geometry;
  FARKV_ASSIGN_OR_RETURN(const std::vector<FetchItem> items,
                         DecodeFetchRequest(body));
  std::vector<absl::StatusOr<PagePin>> pins =
      directory.BeginFetch(caller, layer, Wanted(items));
  FetchReply reply;
  reply.geometry = geometry;
  reply.items = ReplyItems(items, pins, metrics);
  std::vector<FetchReplyItem>& replies = reply.items;
  FetchedRows fetched;
  size_t bytes = 0;
  for (const FetchReplyItem& item : replies) bytes += item.RowsBytes(geometry);
  if (bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a fetch of ", bytes, " bytes; one reply has ", "at most ",
                     kMaxMessageBytes));
  }
  // Not zeroed: every byte is written below.
  FARKV_ASSIGN_OR_RETURN(fetched.rows, memory(bytes));
  std::byte* to = fetched.rows.bytes().data();
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!pins[i].ok()) continue;
    Gather(geometry, replies[i], pins[i]->data(), to);
    to += replies[i].RowsBytes(geometry);
  }
  FARKV_ASSIGN_OR_RETURN(fetched.head, EncodeFetchReply(reply));
  return fetched;
}

}  // namespace farkv

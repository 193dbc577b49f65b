#include "memory_node/data/decide_handler.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "memory_node/data/head_row_reader.h"

namespace farkv {
namespace {

// Of all heads, as Directory::BeginRead wants it.
std::vector<RowsWanted> AllRowsToRead(const EvictionCall& call,
                                      const std::vector<HeadRows>& rows) {
  const VectorsRead read = VectorsReadBy(call.policy);
  std::vector<RowsWanted> wanted;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto of_head = RowsToRead(call.heads[i], rows[i], read);
    wanted.insert(wanted.end(), of_head.begin(), of_head.end());
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const RowsWanted& a, const RowsWanted& b) {
              return std::pair(a.page, a.kv_head) <
                     std::pair(b.page, b.kv_head);
            });
  return wanted;
}

absl::StatusOr<RankedHead> DecideHead(const EvictionCall& call,
                                      const EvictionHead& head,
                                      const HeadRows& rows,
                                      const ReadTicket& ticket) {
  HeadRowReader reader(ticket, head);
  FARKV_RETURN_IF_ERROR(reader.Read(rows, VectorsReadBy(call.policy)));
  return RankHead(call, head, rows, reader.keys(), reader.values());
}

absl::StatusOr<EvictionReply> Decide(const DecideContext& context,
                                     const EvictionCall& call) {
  FARKV_RETURN_IF_ERROR(call.Validate());
  std::vector<HeadRows> rows;
  rows.reserve(call.heads.size());
  for (const EvictionHead& head : call.heads) {
    rows.push_back(HeadRows::Of(head));
  }
  FARKV_ASSIGN_OR_RETURN(
      const ReadTicket ticket,
      context.directory.BeginRead(call.session, call.epoch,
                                  AllRowsToRead(call, rows)));
  std::vector<absl::StatusOr<RankedHead>> decided(call.heads.size());
  context.pool.ParallelFor(
      static_cast<int64_t>(decided.size()), [&](int64_t index) {
        const auto i = static_cast<size_t>(index);
        decided[i] = DecideHead(call, call.heads[i], rows[i], ticket);
      });
  FARKV_RETURN_IF_ERROR(context.directory.CheckRead(ticket));
  EvictionReply reply;
  reply.heads.reserve(decided.size());
  for (absl::StatusOr<RankedHead>& head : decided) {
    if (!head.ok()) return head.status();
    reply.heads.push_back(*std::move(head));
  }
  return reply;
}

}  // namespace

absl::StatusOr<EvictionReply> DecideEvictions(const DecideContext& context,
                                              EvictionCall call) {
  FARKV_ASSIGN_OR_RETURN(EvictionReply reply, Decide(context, call));
  reply.decision_id =
      context.log.Add(std::move(call), reply, context.clock.Now());
  return reply;
}

absl::StatusOr<Replay> ReplayDecision(const DecideContext& context,
                                      const LoggedDecision& decision) {
  if (decision.call == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("decision ", decision.id,
                     ": its inputs were dropped for want of room in the log"));
  }
  Replay replay;
  FARKV_ASSIGN_OR_RETURN(replay.reply, Decide(context, *decision.call));
  replay.reply.decision_id = decision.id;
  replay.same = ReplyDigest(replay.reply) == decision.digest;
  return replay;
}

}  // namespace farkv

#include "memory_node/data/attend_handler.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "common/page/attend_limits.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "common/page/t2_codec.h"
#include "kernels/attention.h"

namespace farkv {
namespace {

// One sequence of the request that can be answered. Addresses are stable: the
// attention's views point into it.
struct Part {
  size_t index = 0;  // in the request
  KvGeometry geometry;
  uint64_t instance = 0;           // of the session
  std::vector<uint64_t> all_live;  // [KV head]
  std::vector<PagePin> pins;       // of the pages that have live rows
  std::vector<Run> runs;           // one per pin
  std::vector<PageRuns> pages;
  KeptLeaves leaves;
};

absl::Status CheckSessionsAreDifferent(const AttendRequest& request) {
  std::set<SessionId> seen;
  for (const AttendSequence& sequence : request.sequences) {
    if (seen.insert(sequence.session).second) continue;
    return absl::InvalidArgumentError(
        "an attend request names a session twice: a step has one row of each");
  }
  return absl::OkStatus();
}

absl::Status CheckGeometry(const KvGeometry& asked, const KvGeometry& session) {
  KvGeometry same = asked;
  same.num_layers = session.num_layers;  // not on the wire
  if (same == session) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "attend for ", asked.num_kv_heads, " KV heads x ", asked.head_dim, " ",
      DTypeName(asked.dtype), ", the session has ", session.num_kv_heads, " x ",
      session.head_dim, " ", DTypeName(session.dtype)));
}

// A message of bytes may name pages whose leaves take gigabytes.
absl::Status CheckLeaves(const AttendRequest& request, uint64_t most) {
  uint64_t pages = 0;
  for (const AttendSequence& sequence : request.sequences) {
    pages += sequence.pages.size();
  }
  const uint64_t leaf_bytes =
      AttendLeafBytes(request.num_query_heads, request.geometry.head_dim);
  if (pages <= std::max<uint64_t>(most / leaf_bytes, 1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "an attend request of ", pages, " pages and ", request.num_query_heads,
      " query heads; its leaves may take ", most, " bytes, each takes ",
      leaf_bytes));
}

bool HasLiveRows(const AttendPage& page) {
  return page.live.empty() ||
         std::any_of(page.live.begin(), page.live.end(),
                     [](uint64_t bitmap) { return bitmap != 0; });
}

// Pins the pages that have live rows. `failed_page` names the one that an error
// is about.
absl::Status PinPages(const AttendContext& context, const DataCaller& caller,
                      int32_t layer, const AttendSequence& sequence, Part& part,
                      uint32_t& failed_page) {
  std::vector<PageWanted> wanted;
  wanted.reserve(sequence.pages.size());
  for (const AttendPage& page : sequence.pages) {
    if (!HasLiveRows(page)) continue;
    wanted.push_back({page.page_index, page.generation,
                      page.live.empty()
                          ? std::span<const uint64_t>(part.all_live)
                          : std::span<const uint64_t>(page.live),
                      page.tier, page.t2_bits});
  }
  part.pins.reserve(wanted.size());
  for (absl::StatusOr<PagePin>& pin :
       context.directory.BeginFetch(caller, layer, wanted)) {
    if (!pin.ok()) {
      failed_page = static_cast<uint32_t>(wanted[part.pins.size()].page_index);
      return pin.status();
    }
    part.pins.push_back(*std::move(pin));
  }
  return absl::OkStatus();
}

// T2 pages as attention wants them: with exceptions in order. A page's checksum
// held when it was compressed, so anything else is damage of the pool.
absl::Status CheckT2Page(const KvGeometry& geometry, const AttendPage& page,
                         const std::byte* parts) {
  const size_t part_bytes = T2HeadLayout::Of(geometry, page.t2_bits).head_bytes;
  for (size_t head = 0; head < static_cast<size_t>(geometry.num_kv_heads);
       ++head) {
    FARKV_RETURN_IF_ERROR(CheckT2Exceptions(
        geometry, page.t2_bits, {parts + head * part_bytes, part_bytes}));
  }
  return absl::OkStatus();
}

// A page as attention reads it, whole and in place: T2 codes are the master
// copy, and a leaf dequantises them to the bits of every other party.
Run ViewPage(const KvGeometry& geometry, const AttendPage& page,
             const std::byte* bytes) {
  Run run;
  run.length = kPageTokens;
  run.source = RunSource::kMappedPage;
  if (page.tier == Tier::kT2) {
    run.t2_bits = static_cast<uint8_t>(page.t2_bits);
    run.keys = bytes + PageLayout::T2(geometry, page.t2_bits).header_bytes;
    run.head_stride = T2HeadLayout::Of(geometry, page.t2_bits).head_bytes;
    return run;
  }
  const std::byte* rows = bytes + PageLayout::T1(geometry).header_bytes;
  run.keys = rows + geometry.KeyOffset(kPageTokens, 0, 0);
  run.values = rows + geometry.ValueOffset(kPageTokens, 0, 0);
  run.head_stride = geometry.HeadStride(kPageTokens);
  return run;
}

absl::Status ViewPages(const AttendSequence& sequence, Part& part,
                       uint32_t& failed_page) {
  part.runs.resize(part.pins.size());
  size_t next_pin = 0;
  for (const AttendPage& page : sequence.pages) {
    PageRuns& view = part.pages.emplace_back();
    view.page_index = page.page_index;
    view.live = page.live.empty() ? part.all_live.data() : page.live.data();
    if (!HasLiveRows(page)) continue;
    Run& run = part.runs[next_pin];
    run = ViewPage(part.geometry, page, part.pins[next_pin++].data());
    view.runs = {&run, 1};
    if (run.t2_bits == 0) continue;
    if (absl::Status s = CheckT2Page(part.geometry, page, run.keys); !s.ok()) {
      failed_page = static_cast<uint32_t>(page.page_index);
      return s;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Part> PreparePart(const AttendContext& context,
                                 const AttendCall& call,
                                 const AttendRequest& request, size_t index,
                                 uint32_t& failed_page) {
  const AttendSequence& sequence = request.sequences[index];
  const DataCaller caller{sequence.session, call.epoch, call.tenant};
  Part part;
  part.index = index;
  FARKV_ASSIGN_OR_RETURN(const CalledSession session,
                         context.directory.CheckCaller(caller));
  part.geometry = session.geometry;
  part.instance = session.instance;
  FARKV_RETURN_IF_ERROR(CheckGeometry(request.geometry, part.geometry));
  if (call.layer < 0 || call.layer >= part.geometry.num_layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", call.layer, " of a session with ",
                     part.geometry.num_layers, " layers"));
  }
  // What a query may see of a page is computed from both.
  constexpr int64_t kMaxPosition = int64_t{kMaxSequencePages} * kPageTokens - 1;
  if (sequence.position > kMaxPosition) {
    return absl::InvalidArgumentError(absl::StrCat(
        "position ", sequence.position, ", must be at most ", kMaxPosition));
  }
  part.all_live.assign(static_cast<size_t>(part.geometry.num_kv_heads),
                       ~uint64_t{0});
  FARKV_RETURN_IF_ERROR(
      PinPages(context, caller, call.layer, sequence, part, failed_page));
  FARKV_RETURN_IF_ERROR(ViewPages(sequence, part, failed_page));
  if (sequence.has_previous) {
    FARKV_RETURN_IF_ERROR(context.scores.Apply(
        part.instance, call.layer, part.geometry, sequence.previous));
  }
  return part;
}

// Exact: the query was rounded to the KV dtype by its sender.
void WidenQuery(DType dtype, std::span<const std::byte> query, float* out) {
  if (dtype == DType::kF32) {
    for (size_t i = 0; i < query.size() / sizeof(float); ++i) {
      out[i] = std::bit_cast<float>(
          LoadLe<uint32_t>(query.data() + i * sizeof(float)));
    }
    return;
  }
  for (size_t i = 0; i < query.size() / sizeof(uint16_t); ++i) {
    out[i] = Bf16ToFloat(LoadLe<uint16_t>(query.data() + i * sizeof(uint16_t)));
  }
}

void Compute(const AttendContext& context, const AttendRequest& request,
             std::vector<Part>& parts,
             std::vector<AttendSequenceReply>& replies) {
  const auto heads = static_cast<size_t>(request.num_query_heads);
  const size_t dim = static_cast<size_t>(request.geometry.head_dim);
  std::vector<float> queries(parts.size() * heads * dim);
  std::vector<AttentionSequence> rows(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const AttendSequence& sequence = request.sequences[parts[i].index];
    WidenQuery(request.geometry.dtype, sequence.queries,
               queries.data() + i * heads * dim);
    rows[i].first_row = static_cast<int32_t>(i);
    rows[i].num_rows = 1;
    rows[i].first_position = sequence.position;
    rows[i].pages = parts[i].pages;
    if (!sequence.scored) continue;
    parts[i].leaves.weights.reserve(parts[i].pages.size() * heads *
                                    kPageTokens);
  }
  AttentionArgs args;
  args.geometry = request.geometry;
  args.num_query_heads = request.num_query_heads;
  args.scale = request.scale;
  args.queries = queries.data();
  args.sequences = rows;
  SubtreeSink sink;
  sink.subtree = [&](int sequence, SubtreeId id, PartialView view) {
    const Part& part = parts[static_cast<size_t>(sequence)];
    replies[part.index].subtrees.push_back(
        {static_cast<uint32_t>(id.level),
         static_cast<uint32_t>(id.index),
         {view.m, view.m + heads},
         {view.l, view.l + heads},
         {view.out, view.out + heads * dim}});
  };
  sink.leaf = [&](int sequence, int page, const float* weights,
                  const float* m) {
    if (!request.sequences[parts[static_cast<size_t>(sequence)].index].scored) {
      return;
    }
    // A page without live rows need not be there, and has no mass.
    const auto is_empty = [](float max) { return std::isinf(max) && max < 0; };
    if (std::all_of(m, m + heads, is_empty)) return;
    KeptLeaves& leaves = parts[static_cast<size_t>(sequence)].leaves;
    leaves.pages.push_back(rows[static_cast<size_t>(sequence)]
                               .pages[static_cast<size_t>(page)]
                               .page_index);
    leaves.weights.insert(leaves.weights.end(), weights,
                          weights + heads * kPageTokens);
    leaves.m.insert(leaves.m.end(), m, m + heads);
  };
  AttentionSubtrees(context.pool, args, sink);
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> AttendPages(
    const AttendContext& context, const AttendCall& call,
    std::span<const std::byte> body) {
  FARKV_ASSIGN_OR_RETURN(const AttendRequest request,
                         DecodeAttendRequest(body));
  FARKV_RETURN_IF_ERROR(CheckSessionsAreDifferent(request));
  FARKV_RETURN_IF_ERROR(CheckLeaves(request, context.max_leaf_bytes));
  std::vector<AttendSequenceReply> replies(request.sequences.size());
  std::vector<Part> parts;
  parts.reserve(request.sequences.size());
  for (size_t i = 0; i < request.sequences.size(); ++i) {
    absl::StatusOr<Part> part =
        PreparePart(context, call, request, i, replies[i].failed_page);
    replies[i].code = part.status().code();
    if (part.ok()) {
      parts.push_back(*std::move(part));
    } else {
      context.metrics.attend.CountFailure(replies[i].code);
    }
  }
  Compute(context, request, parts, replies);
  for (Part& part : parts) {
    if (!request.sequences[part.index].scored) continue;
    part.leaves.step = call.step;
    if (!context.scores.Keep(part.instance, call.layer,
                             std::move(part.leaves))) {
      context.metrics.lost_scores.Increment();
    }
  }
  return EncodeAttendReply(replies, request.num_query_heads,
                           request.geometry.head_dim);
}

absl::StatusOr<std::vector<std::byte>> CollectScores(
    const AttendContext& context, const DataCaller& caller,
    std::span<const std::byte> body) {
  FARKV_ASSIGN_OR_RETURN(const CalledSession session,
                         context.directory.CheckCaller(caller));
  FARKV_ASSIGN_OR_RETURN(const ScoresRequest request,
                         DecodeScoresRequest(body));
  FARKV_ASSIGN_OR_RETURN(
      const std::vector<PageScores> pages,
      context.scores.Collect(session.instance, session.geometry, request));
  return EncodeScoresReply(pages);
}

}  // namespace farkv

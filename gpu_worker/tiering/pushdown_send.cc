// Pushdown: the queries of a layer go to the nodes.
#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "common/page/attend_limits.h"
#include "gpu_worker/tiering/attend_reply_check.h"
#include "gpu_worker/tiering/pushdown.h"

namespace farkv {
namespace {

// Well below what one message may carry.
constexpr uint64_t kMaxAttendReplyBytes = uint64_t{16} << 20;

// As attention itself rounds the query: once, to the KV dtype.
std::vector<std::byte> RoundQuery(DType dtype, const float* query,
                                  size_t count) {
  if (dtype == DType::kF32) {
    std::vector<std::byte> bytes(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      StoreLe(bytes.data() + i * sizeof(float),
              std::bit_cast<uint32_t>(query[i]));
    }
    return bytes;
  }
  std::vector<std::byte> bytes(count * sizeof(uint16_t));
  for (size_t i = 0; i < count; ++i) {
    StoreLe(bytes.data() + i * sizeof(uint16_t), FloatToBf16(query[i]));
  }
  return bytes;
}

// Pieces of `max_pages` pages at most, cut where aligned subtrees end: what a
// node merges of each is part of the same tree. A block that no longer fits
// begins the next piece.
std::vector<AttendSequence> Split(AttendSequence sequence, size_t max_pages) {
  std::vector<AttendSequence> pieces;
  if (sequence.pages.size() <= max_pages) {
    pieces.push_back(std::move(sequence));
    return pieces;
  }
  const auto block = static_cast<int32_t>(std::bit_floor(max_pages));
  std::vector<AttendPage> pages = std::move(sequence.pages);
  sequence.pages.clear();
  for (size_t i = 0; i < pages.size();) {
    size_t end = i + 1;
    while (end < pages.size() &&
           pages[end].page_index / block == pages[i].page_index / block) {
      ++end;
    }
    if (pieces.empty() || pieces.back().pages.size() + end - i > max_pages) {
      pieces.push_back(sequence);
    }
    std::move(pages.begin() + static_cast<ptrdiff_t>(i),
              pages.begin() + static_cast<ptrdiff_t>(end),
              std::back_inserter(pieces.back().pages));
    i = end;
  }
  return pieces;
}

}  // namespace

AttendSequence Pushdown::MakeSequence(const StepPart& part, int layer, int node,
                                      const float* query) const {
  const Sequence& sequence = *part.sequence;
  AttendSequence made;
  made.session = sequence.spec.session;
  made.position = part.first_position;
  made.scored = true;
  for (const ReadPage& read : sequence.reads.pages) {
    if (read.way != ReadWay::kAttend || read.node != node) continue;
    const auto index = static_cast<size_t>(read.page_index);
    const Page& page = sequence.table.page(read.page_index);
    const uint64_t* live = page.layer_live(layer, geometry_.num_kv_heads);
    if (part.Selects(layer)) {
      const SelectedPage* chosen =
          sequence.selection.Find(layer, read.page_index);
      if (chosen == nullptr) continue;
      live = chosen->live.data();
    }
    AttendPage& asked = made.pages.emplace_back();
    asked.page_index = read.page_index;
    const PagePlace& place =
        sequence.remote.pages[index].places[static_cast<size_t>(layer)];
    asked.generation = place.generation;
    asked.tier = place.tier;
    asked.t2_bits = place.t2_bits;
    if (!std::all_of(live, live + geometry_.num_kv_heads,
                     [](uint64_t bitmap) { return bitmap == ~uint64_t{0}; })) {
      asked.live.assign(live, live + geometry_.num_kv_heads);
    }
  }
  if (made.pages.empty()) return made;
  const auto globals = sequence.pushdown.globals.find(node);
  if (globals != sequence.pushdown.globals.end()) {
    made.previous = globals->second[static_cast<size_t>(layer)];
    made.has_previous = !made.previous.m.empty();
  }
  made.queries = RoundQuery(geometry_.dtype, query,
                            static_cast<size_t>(num_query_heads_) *
                                static_cast<size_t>(geometry_.head_dim));
  return made;
}

std::shared_ptr<Pushdown::Attend> Pushdown::NewAttend(int node,
                                                      float scale) const {
  auto attend = std::make_shared<Attend>();
  attend->node = node;
  attend->request.geometry = geometry_;
  attend->request.geometry.num_layers = 0;
  attend->request.num_query_heads = num_query_heads_;
  attend->request.scale = scale;
  return attend;
}

absl::Status Pushdown::Start(const std::shared_ptr<Attend>& attend, int layer) {
  FARKV_ASSIGN_OR_RETURN(std::vector<std::byte> body,
                         EncodeAttendRequest(attend->request));
  MessageHeader header;
  header.type = MessageType::kAttendRequest;
  header.layer = static_cast<uint32_t>(layer);
  header.step = step_;
  attend->sent = clock_.Now();
  attend->sent_here = Clock::Boottime().Now();
  attend->call = NodeCall::Start(
      *links_[static_cast<size_t>(attend->node)], header, std::move(body),
      options_.fetch_timeout,
      [&clock = clock_,
       into = std::weak_ptr(attend)](const Message& reply) -> absl::Status {
        const auto alive = into.lock();
        if (alive == nullptr) return absl::CancelledError("given up");
        FARKV_ASSIGN_OR_RETURN(alive->replies,
                               DecodeAttendReply(reply.body.bytes()));
        FARKV_RETURN_IF_ERROR(CheckAttendReply(alive->request, alive->replies));
        alive->took = clock.Now() - alive->sent;
        alive->took_here = Clock::Boottime().Now() - alive->sent_here;
        return absl::OkStatus();
      });
  layers_[static_cast<size_t>(layer)].attends.push_back(attend);
  return absl::OkStatus();
}

// At the most: each page a subtree of its own.
uint64_t Pushdown::ReplyBytes(size_t pages) const {
  return static_cast<uint64_t>(pages) *
         static_cast<uint64_t>(num_query_heads_) *
         static_cast<uint64_t>(geometry_.head_dim + 2) * sizeof(float);
}

// Whether `more` pages of the part numbered `part` go into another request: one
// reply could grow too large, or the node's memory be too small for the leaves.
// A request names each sequence once.
bool Pushdown::IsFull(const Attend& attend, size_t pages, size_t part,
                      size_t more) const {
  if (pages == 0) return false;
  return attend.parts.back() == part || pages + more > MaxPages() ||
         ReplyBytes(pages + more) > kMaxAttendReplyBytes;
}

size_t Pushdown::MaxPages() const {
  return MaxAttendPages(num_query_heads_, geometry_.head_dim,
                        options_.max_attend_leaf_bytes);
}

// The pieces of a long sequence are sent at once; a node attends to one after
// the other.
absl::Status Pushdown::SendTo(int node, int layer, const float* queries,
                              float scale) {
  const size_t row = static_cast<size_t>(num_query_heads_) *
                     static_cast<size_t>(geometry_.head_dim);
  std::shared_ptr<Attend> attend = NewAttend(node, scale);
  size_t pages = 0;
  size_t first_row = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const StepPart& part = parts_[i];
    const float* query = queries + first_row * row;
    first_row += static_cast<size_t>(part.num_rows);
    if (part.sequence->reads.elsewhere.empty()) continue;
    AttendSequence sequence = MakeSequence(part, layer, node, query);
    if (sequence.pages.empty()) continue;
    for (AttendSequence& piece : Split(std::move(sequence), MaxPages())) {
      if (IsFull(*attend, pages, i, piece.pages.size())) {
        FARKV_RETURN_IF_ERROR(Start(attend, layer));
        attend = NewAttend(node, scale);
        pages = 0;
      }
      pages += piece.pages.size();
      attend->request.sequences.push_back(std::move(piece));
      attend->parts.push_back(i);
    }
  }
  return pages > 0 ? Start(attend, layer) : absl::OkStatus();
}

absl::Status Pushdown::Send(int layer, const float* queries, float scale) {
  for (const auto& link : links_) {
    FARKV_RETURN_IF_ERROR(SendTo(link->index(), layer, queries, scale));
  }
  layers_[static_cast<size_t>(layer)].sent = true;
  return absl::OkStatus();
}

}  // namespace farkv

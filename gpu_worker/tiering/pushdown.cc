#include "gpu_worker/tiering/pushdown.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/attend_reply_check.h"

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

}  // namespace

Pushdown::Pushdown(const TieringOptions& options, const KvGeometry& geometry,
                   int num_query_heads,
                   std::span<const std::unique_ptr<NodeLink>> links,
                   const Clock& clock, DeviceKind device)
    : options_(options),
      geometry_(geometry),
      num_query_heads_(num_query_heads),
      links_(links),
      clock_(clock),
      device_(device),
      choices_(links.size()),
      layers_(static_cast<size_t>(geometry.num_layers)),
      pauses_(links.size()) {}

std::vector<bool> Pushdown::Nodes() const {
  std::vector<bool> nodes(links_.size());
  if (options_.cold != ColdMode::kPushdown &&
      options_.cold != ColdMode::kAuto) {
    return nodes;
  }
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < links_.size(); ++i) {
    nodes[i] = links_[i]->healthy() && pauses_[i].Over(now);
  }
  return nodes;
}

std::vector<bool> Pushdown::Able() const {
  std::vector<bool> nodes(links_.size(), options_.cold == ColdMode::kPushdown);
  if (options_.cold != ColdMode::kAuto || MustFetch()) return nodes;
  for (size_t i = 0; i < links_.size(); ++i) nodes[i] = !links_[i]->maps();
  return nodes;
}

void Pushdown::Begin(std::span<StepPart> parts, uint64_t step) {
  parts_ = parts;
  step_ = step;
  active_ = std::any_of(parts.begin(), parts.end(), [](const StepPart& part) {
    return !part.sequence->reads.elsewhere.empty();
  });
  // Rows too many to be fetched: not the mode that was to be measured.
  if (active_ && !metered_.pushes) meters_ = false;
  absl::MutexLock lock(&mutex_);
  status_ = absl::OkStatus();
  attend_waits_ = absl::ZeroDuration();
}

absl::StatusOr<std::span<AttentionElsewhere>> Pushdown::Layer(int layer) {
  {
    absl::MutexLock lock(&mutex_);
    FARKV_RETURN_IF_ERROR(status_);
  }
  LayerState& state = layers_[static_cast<size_t>(layer)];
  state.attends.clear();
  state.elsewhere.clear();
  state.sent = false;
  state.received = false;
  if (!active_) return std::span<AttentionElsewhere>();
  state.elsewhere.resize(parts_.size());
  for (AttentionElsewhere& place : state.elsewhere) {
    place.wait = [this, layer] { Receive(layer); };
  }
  return std::span<AttentionElsewhere>(state.elsewhere);
}

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

// Several requests when one reply could grow too large; nodes answer them in
// parallel.
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
    if (pages > 0 &&
        ReplyBytes(pages + sequence.pages.size()) > kMaxAttendReplyBytes) {
      FARKV_RETURN_IF_ERROR(Start(attend, layer));
      attend = NewAttend(node, scale);
      pages = 0;
    }
    pages += sequence.pages.size();
    attend->request.sequences.push_back(std::move(sequence));
    attend->parts.push_back(i);
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

void Pushdown::Receive(int layer) {
  LayerState& state = layers_[static_cast<size_t>(layer)];
  if (std::exchange(state.received, true)) return;
  if (!state.sent) {
    absl::MutexLock lock(&mutex_);
    status_.Update(absl::InternalError(
        absl::StrCat("layer ", layer, ": SendQueries was not called")));
  }
  absl::Duration waited;
  for (const auto& attend : state.attends) {
    const NodeLink& link = *links_[static_cast<size_t>(attend->node)];
    const absl::Time began = Clock::Boottime().Now();
    const absl::Status status = attend->call->Wait();
    waited += Clock::Boottime().Now() - began;
    if (!status.ok()) {
      spdlog::warn(
          "node {}, layer {}: pushdown failed, its rows are fetched for a "
          "while: {}",
          link.node_id(), layer, std::string(status.message()));
      absl::MutexLock lock(&mutex_);
      pauses_[static_cast<size_t>(attend->node)].Failed(clock_.Now());
      status_.Update(absl::AbortedError(
          absl::StrCat("node ", link.node_id(), ", layer ", layer,
                       ": pushdown failed: ", std::string(status.message()))));
      continue;
    }
    for (size_t i = 0; i < attend->parts.size(); ++i) {
      AttentionElsewhere& place = state.elsewhere[attend->parts[i]];
      for (AttendSubtree& subtree : attend->replies[i].subtrees) {
        place.subtrees.push_back(
            {{static_cast<int32_t>(subtree.level),
              static_cast<int32_t>(subtree.index)},
             {subtree.m.data(), subtree.l.data(), subtree.out.data()}});
      }
    }
  }
  for (AttentionElsewhere& place : state.elsewhere) {
    std::sort(place.subtrees.begin(), place.subtrees.end(),
              [](const ForeignSubtree& a, const ForeignSubtree& b) {
                return a.id.begin() < b.id.begin();
              });
  }
  absl::MutexLock lock(&mutex_);
  attend_waits_ += waited;
}

void Pushdown::KeepGlobals(StepPart& part, size_t index) {
  for (int layer = 0; layer < geometry_.num_layers; ++layer) {
    KeepGlobalsOfLayer(part, index, layer);
  }
  part.sequence->stats.cold_mode = "pushdown";
}

// A node that had nothing to attend to in a layer still has the weights of the
// step before there, so it gets that one's globals next time.
void Pushdown::KeepGlobalsOfLayer(StepPart& part, size_t index, int layer) {
  Sequence& sequence = *part.sequence;
  SequencePushdown& state = sequence.pushdown;
  std::set<int> nodes;
  for (const ReadPage& read : sequence.reads.pages) {
    if (read.way != ReadWay::kAttend) continue;
    uint64_t slots = read.slots;
    if (part.Selects(layer)) {
      const SelectedPage* chosen =
          sequence.selection.Find(layer, read.page_index);
      if (chosen == nullptr) continue;
      slots &= chosen->slots;
    }
    nodes.insert(read.node);
    state.pages[read.node].insert(read.page_index);
    const int64_t rows = std::popcount(slots) * int64_t{geometry_.num_kv_heads};
    sequence.stats.cold_rows_pushed_down += rows;
    sequence.CountReads(read.node, rows);
  }
  const auto at = static_cast<size_t>(layer);
  const AttentionElsewhere& place = layers_[at].elsewhere[index];
  for (const int node : nodes) {
    std::vector<AttendGlobals>& globals = state.globals[node];
    globals.resize(layers_.size());
    globals[at] = {step_, place.m, place.l};
  }
}

absl::Status Pushdown::Commit(absl::Duration fetch_waits) {
  if (!active_) {
    MeterStep(fetch_waits);
    return absl::OkStatus();
  }
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = status_;
  }
  if (status.ok()) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].sequence->reads.elsewhere.empty()) {
        KeepGlobals(parts_[i], i);
      }
    }
    NoteSuccess();
    MeterStep(fetch_waits);
  }
  Discard();
  return status;
}

void Pushdown::NoteSuccess() {
  std::set<int> nodes;
  for (const LayerState& layer : layers_) {
    for (const auto& attend : layer.attends) nodes.insert(attend->node);
  }
  absl::MutexLock lock(&mutex_);
  for (const int node : nodes) pauses_[static_cast<size_t>(node)].Succeeded();
}

void Pushdown::Discard() {
  for (LayerState& state : layers_) state = LayerState();
  parts_ = {};
  active_ = false;
}

}  // namespace farkv

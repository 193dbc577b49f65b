#include "gpu_worker/tiering/pushdown.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"

namespace farkv {
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

// --cold=auto: what a step wants of each node, the mode that this makes the
// cheaper one, and what the step has told about nodes and links.
#include <algorithm>
#include <bit>

#include "common/plan/cold_bytes.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/pushdown.h"

namespace farkv {
namespace {

// The share of its rows that a step of the sequence reads, all layers together.
double ReadShare(const Sequence& sequence, int num_layers) {
  const SelectionSettings& selection = sequence.spec.selection;
  const int64_t read = sequence.stats.selected_groups;
  const int64_t all = read + sequence.stats.skipped_groups;
  if (selection.policy == SelectionPolicy::kNone || all == 0) return 1;
  const double selecting =
      static_cast<double>(std::max(num_layers - selection.dense_layers, 0)) /
      num_layers;
  return 1 -
         selecting * (1 - static_cast<double>(read) / static_cast<double>(all));
}

uint64_t Scale(double share, uint64_t amount) {
  return static_cast<uint64_t>(share * static_cast<double>(amount));
}

uint64_t RowsOf(const AttendRequest& request) {
  uint64_t rows = 0;
  for (const AttendSequence& sequence : request.sequences) {
    for (const AttendPage& page : sequence.pages) {
      if (page.live.empty()) {
        rows += static_cast<uint64_t>(kPageTokens) *
                static_cast<uint64_t>(request.geometry.num_kv_heads);
      }
      for (const uint64_t live : page.live) {
        rows += static_cast<uint64_t>(std::popcount(live));
      }
    }
  }
  return rows;
}

}  // namespace

void Pushdown::AddWork(const Sequence& sequence,
                       std::vector<ColdWork>& work) const {
  const double share = ReadShare(sequence, geometry_.num_layers);
  const auto layers = static_cast<uint64_t>(geometry_.num_layers);
  std::vector<std::vector<int32_t>> pages(work.size());
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const Page& page = sequence.table.page(i);
    const RemotePage& remote = sequence.remote.pages[static_cast<size_t>(i)];
    if (page.cold() == 0 || remote.node < 0) continue;
    const auto node = static_cast<size_t>(remote.node);
    pages[node].push_back(page.index);
    const PagePlace& place = remote.places.front();
    const auto cold = static_cast<uint64_t>(std::popcount(page.cold()));
    work[node].fetch_bytes += Scale(
        share, layers * FetchBytes(geometry_, place.tier, place.t2_bits, cold));
    work[node].attend_rows +=
        Scale(share, layers * static_cast<uint64_t>(std::popcount(page.alive)) *
                         static_cast<uint64_t>(geometry_.num_kv_heads));
  }
  for (size_t node = 0; node < pages.size(); ++node) {
    if (pages[node].empty()) continue;
    const auto subtrees = static_cast<uint64_t>(CountSubtrees(pages[node]));
    work[node].message_bytes +=
        layers * AttendMessageBytes(geometry_, num_query_heads_, subtrees,
                                    pages[node].size());
    work[node].ahead &=
        sequence.spec.selection.policy == SelectionPolicy::kNone;
  }
}

std::vector<ColdWork> Pushdown::WorkOf(std::span<const StepPart> parts) const {
  std::vector<ColdWork> work(links_.size());
  for (ColdWork& each : work) each.layers = geometry_.num_layers;
  for (const StepPart& part : parts) {
    if (CanPush(part)) AddWork(*part.sequence, work);
  }
  return work;
}

ColdChoice Pushdown::ChooseFor(const NodeLink& link, const ColdWork& work,
                               bool answers) {
  if (link.maps()) return {ColdMode::kMap, ColdReason::kMapped, {}};
  if (MustFetch()) {
    return {ColdMode::kPrefetch, ColdReason::kExactness, {}};
  }
  if (!answers) return {ColdMode::kPrefetch, ColdReason::kPaused, {}};
  return choices_[static_cast<size_t>(link.index())].Next(
      work, links_[static_cast<size_t>(link.index())]->rates().Figures(),
      meter_.Get(), clock_.Now());
}

std::vector<bool> Pushdown::Choose(std::span<const StepPart> parts) {
  step_began_ = Clock::Boottime().Now();
  std::vector<bool> nodes = Nodes();
  meters_ = options_.cold == ColdMode::kAuto;
  if (!meters_) return nodes;
  const std::vector<ColdWork> work = WorkOf(parts);
  int fetching = 0, pushing = 0;
  for (const auto& link : links_) {
    const auto i = static_cast<size_t>(link->index());
    if (work[i].fetch_bytes == 0) {
      nodes[i] = false;
      continue;
    }
    const ColdChoice before = link->rates().choice();
    const ColdChoice choice = ChooseFor(*link, work[i], nodes[i]);
    nodes[i] = choice.mode == ColdMode::kPushdown;
    ++(nodes[i] ? pushing : fetching);
    link->rates().NoteChoice(choice);
    if (choice.mode == before.mode || choice.reason == ColdReason::kTrial ||
        before.reason == ColdReason::kTrial) {
      continue;
    }
    spdlog::info(
        "node {}: cold rows by {} ({}); a step would take {} "
        "fetching, {} pushing down",
        link->node_id(), ColdModeName(choice.mode),
        ColdReasonName(choice.reason), absl::FormatDuration(choice.step.fetch),
        absl::FormatDuration(choice.step.push));
  }
  meters_ = (fetching == 0) != (pushing == 0) &&
            std::all_of(parts.begin(), parts.end(), CanPush);
  metered_ = MeteredStep();
  metered_.pushes = pushing > 0;
  return nodes;
}

// Requests of one layer run beside each other, those of different layers one
// after another.
AttendSample Pushdown::SampleOf(int node) const {
  AttendSample sample;
  for (const LayerState& layer : layers_) {
    absl::Duration took;
    for (const auto& attend : layer.attends) {
      if (attend->node != node) continue;
      if (attend->call->repeated()) return {};
      took = std::max(took, attend->took);
      sample.rows += RowsOf(attend->request);
      for (const AttendSequence& asked : attend->request.sequences) {
        sample.bytes += asked.queries.size();
      }
      for (const AttendSequenceReply& reply : attend->replies) {
        for (const AttendSubtree& subtree : reply.subtrees) {
          sample.bytes += subtree.out.size() * sizeof(float);
        }
      }
    }
    if (took == absl::ZeroDuration()) continue;
    ++sample.requests;
    sample.took += took;
  }
  return sample;
}

// Of a step that has succeeded.
void Pushdown::MeterStep(absl::Duration fetch_waits) {
  for (const auto& link : links_) {
    if (active_) link->rates().NoteAttend(SampleOf(link->index()));
  }
  if (!meters_) return;
  meters_ = false;
  metered_.took = Clock::Boottime().Now() - step_began_;
  metered_.fetch_waits = fetch_waits;
  for (const LayerState& layer : layers_) {
    absl::Duration took;
    for (const auto& attend : layer.attends) {
      took = std::max(took, attend->took_here);
    }
    metered_.attends_took += took;
  }
  {
    absl::MutexLock lock(&mutex_);
    metered_.attend_waits = attend_waits_;
  }
  meter_.Note(metered_);
}

}  // namespace farkv

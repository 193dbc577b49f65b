// Where the pages of a sequence go: its places on nodes, one interval ahead.
#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/remote_tier_impl.h"
#include "gpu_worker/tiering/stripes.h"

namespace farkv {

absl::Status RemoteTier::RecordPlaces(Sequence& sequence,
                                      PagesReserved& event) {
  FARKV_RETURN_IF_ERROR(event.placements.status());
  for (const PagePlacement& placement : *event.placements) {
    FARKV_RETURN_IF_ERROR(placement.status);
  }
  for (size_t i = 0; i < event.asked.size(); ++i) {
    const PageName& name = event.asked[i];
    RemotePage& page =
        sequence.remote.pages[static_cast<size_t>(name.page_index)];
    // A late answer may be for a page that another node has by now; what this
    // one holds of it goes back with the session.
    if (page.node >= 0 && page.node != event.node) continue;
    page.node = event.node;
    page.places.resize(static_cast<size_t>(geometry_.num_layers));
    PagePlace& place = page.places[static_cast<size_t>(name.layer)];
    place = PagePlace();
    place.generation = (*event.placements)[i].generation;
    if (i < event.maps.size()) place.map = event.maps[i];
  }
  // A page is mapped whole or not at all.
  for (const PageName& name : event.asked) {
    std::vector<PagePlace>& places =
        sequence.remote.pages[static_cast<size_t>(name.page_index)].places;
    const bool whole = std::all_of(
        places.begin(), places.end(),
        [](const PagePlace& place) { return place.map.data != nullptr; });
    if (whole) continue;
    for (PagePlace& place : places) place.map = MappedPage();
  }
  return absl::OkStatus();
}

void RemoteTier::Handle(PagesReserved event, SequenceMap& sequences) {
  Sequence* sequence = FindSequence(sequences, event.sequence);
  if (sequence == nullptr) return;
  RemoteState& remote = sequence->remote;
  remote.reserving = false;
  absl::Status s = RecordPlaces(*sequence, event);
  NoteRefusal(event.node, s);
  if (!s.ok()) {
    // A node that is full is passed over (and one that drains, if it is of a
    // release that refuses then); one that did not answer is asked again, for
    // the same pages.
    if (absl::IsResourceExhausted(s) || ReasonOf(s) == ErrorReason::kDraining) {
      ++remote.first_choice;
    }
    remote.reserve_retry_at = Now() + RetryAfterOf(s).value_or(kFirstRetry);
  }
  Reserve(*sequence);
}

// Rows that no node takes stay in T0, which looks like a small T0: so it is
// said where it begins, and where T0 is full.
void RemoteTier::NoteRefusal(int node, const absl::Status& status) {
  if (status.ok()) {
    last_refusal_.clear();
    return;
  }
  const bool is_first = last_refusal_.empty();
  last_refusal_ =
      absl::StrCat("memory node ", link(node).node_id(), " (",
                   link(node).address(), ") takes no page: ", status.message());
  if (is_first) spdlog::warn("{}", last_refusal_);
}

// What may be full one interval from now.
int RemoteTier::WantedPages(const Sequence& sequence) const {
  const int64_t tokens =
      std::max(sequence.table.num_tokens(), sequence.spec.prompt_tokens) +
      sequence.spec.placement.interval + kPageTokens;
  return static_cast<int>(
      std::min<int64_t>(tokens / kPageTokens,
                        static_cast<int64_t>(sequence.remote.pages.size())));
}

bool RemoteTier::MayTakePages(const Sequence& sequence, int node) const {
  const RemoteState& remote = sequence.remote;
  const bool open =
      remote.nodes[static_cast<size_t>(node)].session != nullptr ||
      remote.continues;
  return link(node).healthy() && (open || !link(node).draining());
}

int RemoteTier::NodeFor(const Sequence& sequence, int32_t page_index) const {
  const RemoteState& remote = sequence.remote;
  const auto first_of = [&](std::span<const int> nodes) {
    for (int skip = 0; skip < static_cast<int>(nodes.size()); ++skip) {
      const int node = NodeOfPage(nodes, page_index, options_.stripe_tokens,
                                  options_.spread, remote.first_choice + skip);
      if (MayTakePages(sequence, node)) return node;
    }
    return -1;
  };
  // Those that are distrusted or drain have no turns while another is healthy
  // and has not refused.
  absl::InlinedVector<int, 8> preferred;
  for (int i = 0; i < remote.num_trusted; ++i) {
    const int node = remote.order[static_cast<size_t>(i)];
    if (!link(node).draining()) preferred.push_back(node);
  }
  int node = -1;
  if (remote.first_choice < static_cast<int>(preferred.size())) {
    node = first_of(preferred);
  }
  return node >= 0 ? node : first_of(remote.order);
}

bool RemoteTier::NeedsPlace(const Sequence& sequence, int page_index) {
  if (sequence.remote.pages[static_cast<size_t>(page_index)].node >= 0) {
    return false;
  }
  return page_index >= sequence.table.num_pages() ||
         sequence.table.page(page_index).state != StoreState::kGone;
}

void RemoteTier::Reserve(Sequence& sequence) {
  RemoteState& remote = sequence.remote;
  const absl::Time now = Now();
  const int wanted = WantedPages(sequence);
  int& first = remote.first_unreserved;
  while (first < wanted && !NeedsPlace(sequence, first)) ++first;
  if (remote.reserving || first >= wanted || now < remote.reserve_retry_at) {
    return;
  }
  const int node = NodeFor(sequence, first);
  if (node < 0) return;
  RemoteState::OnNode& on = remote.nodes[static_cast<size_t>(node)];
  if (on.session == nullptr) {
    if (on.opening || now < on.retry_at) return;
    on.opening = true;
    link(node).OpenSession(sequence.id, sequence.spec.session,
                           remote.continues);
    return;
  }
  std::vector<PageName> pages;
  for (int i = first; i < wanted; ++i) {
    if (static_cast<int>(pages.size()) + geometry_.num_layers > kMaxPlanItems ||
        NodeFor(sequence, i) != node) {
      break;
    }
    if (!NeedsPlace(sequence, i)) continue;
    for (int layer = 0; layer < geometry_.num_layers; ++layer) {
      pages.push_back({layer, i});
    }
  }
  remote.reserving = true;
  link(node).Reserve(sequence.id, on.session, std::move(pages));
}

}  // namespace farkv

// Tells nodes which rows have been destroyed, so that they count what lives
// and free the pages without any. Nothing waits for it: the worker's page
// table is the truth, and what is asked for is named row by row.
#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "gpu_worker/tiering/remote_tier.h"

namespace farkv {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);

struct Evictions {
  std::vector<PageEviction> evictions;
  std::vector<PageName> free;
  std::vector<int32_t> pages;
};

// A page that lost its last row goes in all layers at once; until then a layer
// without rows keeps its page, because pages are asked for in all layers.
void Add(const KvGeometry& geometry, const Page& page, Evictions& into) {
  into.pages.push_back(page.index);
  const auto heads = static_cast<size_t>(geometry.num_kv_heads);
  for (int layer = 0; layer < geometry.num_layers; ++layer) {
    const PageName name{layer, page.index};
    if (page.state == StoreState::kGone) {
      into.free.push_back(name);
      continue;
    }
    const uint64_t* live = page.layer_live(layer, geometry.num_kv_heads);
    std::vector<uint64_t> bitmaps(live, live + heads);
    uint64_t left = 0;
    for (const uint64_t bitmap : bitmaps) left |= bitmap;
    if (left != 0) into.evictions.push_back({name, std::move(bitmaps)});
  }
}

// Pages go back at once; of rows a node hears once per interval, because some
// policies destroy a few at every step.
bool IsTime(const Evictions& found, const Sequence& sequence,
            const RemoteState::OnNode& on) {
  return !found.free.empty() || sequence.table.num_tokens() - on.told_tokens >=
                                    sequence.spec.placement.interval;
}

bool MayTell(const Page& page, const RemotePage& place, int node) {
  return page.eviction_due && place.node == node && !place.moving &&
         !place.places.empty() &&
         (page.state == StoreState::kStored || page.state == StoreState::kGone);
}

}  // namespace

void RemoteTier::Evict(Sequence& sequence) {
  if (!sequence.spec.destruction.has_value()) return;
  const absl::Time now = clock_->Now();
  for (const auto& link : links_) {
    const auto node = static_cast<size_t>(link->index());
    RemoteState::OnNode& on = sequence.remote.nodes[node];
    if (on.evicting || on.session == nullptr || now < on.evict_retry_at) {
      continue;
    }
    Evictions found;
    // A last page that cannot become full has no place.
    const int num_pages =
        std::min(sequence.table.num_pages(),
                 static_cast<int>(sequence.remote.pages.size()));
    for (int i = 0; i < num_pages; ++i) {
      const Page& page = sequence.table.page(i);
      const RemotePage& place = sequence.remote.pages[static_cast<size_t>(i)];
      if (!MayTell(page, place, link->index())) continue;
      const size_t items = found.evictions.size() + found.free.size();
      if (items + static_cast<size_t>(geometry_.num_layers) > kMaxPlanItems) {
        break;
      }
      Add(geometry_, page, found);
    }
    if (found.pages.empty() || !IsTime(found, sequence, on)) continue;
    for (const int32_t index : found.pages) {
      sequence.table.page(index).eviction_due = false;
    }
    on.told_tokens = sequence.table.num_tokens();
    // What is on its way to T0 may be of a page that goes now.
    if (!found.free.empty()) sequence.promotion = SequencePromotion();
    on.evicting = true;
    link->Evict(sequence.id, on.session, std::move(found.evictions),
                std::move(found.free), std::move(found.pages));
  }
}

void RemoteTier::Handle(const PagesEvicted& event, SequenceMap& sequences) {
  const auto found = sequences.find(event.sequence);
  if (found == sequences.end()) return;
  Sequence& sequence = *found->second;
  RemoteState::OnNode& on =
      sequence.remote.nodes[static_cast<size_t>(event.node)];
  on.evicting = false;
  if (!event.status.ok()) {
    on.evict_retry_at = clock_->Now() + kRetry;
  }
  for (const int32_t index : event.pages) {
    RemotePage& place = sequence.remote.pages[static_cast<size_t>(index)];
    if (place.node != event.node) continue;
    Page& page = sequence.table.page(index);
    if (!event.status.ok()) {
      page.eviction_due = true;
    } else if (page.state == StoreState::kGone && !page.eviction_due) {
      place = RemotePage();
    }
  }
}

}  // namespace farkv

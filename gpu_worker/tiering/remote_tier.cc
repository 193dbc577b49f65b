#include "gpu_worker/tiering/remote_tier.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/destruction.h"
#include "gpu_worker/tiering/stripes.h"
#include "gpu_worker/tiering/tier_moves.h"

namespace farkv {
namespace {

// Checks rows and sends stores; two, so that a long check delays nobody.
constexpr int kExecutorThreads = 2;
constexpr uint64_t kStoreBytes = uint64_t{64} << 20;
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr int kMaxRetryDoublings = 5;
// After a node had no room for a T2 page.
constexpr absl::Duration kRefused = absl::Seconds(1);
// Layers of pages in one call, which must end well within its deadline: the
// node compresses them before it answers.
constexpr int kMaxCompressed = 256;
// Tokens whose rows stay exact in T2, from the start of the sequence
// (attention sinks, arXiv 2309.17453).
constexpr int kSinkTokens = 4;

absl::Time Now() { return Clock::Boottime().Now(); }

Sequence* Find(SequenceMap& sequences, SequenceId id) {
  const auto found = sequences.find(id);
  return found == sequences.end() ? nullptr : found->second.get();
}

// The last word on "exactly once", when nothing can be under way any more.
void LogAccount(const NodeLink& link) {
  const PeerStats stats = link.Stats();
  const TransportCounters& wire = stats.transfers;
  const bool even = stats.requests_sent == stats.requests_answered &&
                    wire.submitted == wire.completed &&
                    wire.open_operations == 0;
  spdlog::log(even ? spdlog::level::info : spdlog::level::err,
              "memory node {}: {} requests sent, {} answered; transport: {} "
              "submitted, {} completed, {} still open",
              stats.id, stats.requests_sent, stats.requests_answered,
              wire.submitted, wire.completed, wire.open_operations);
}

// Slots of a page that hold sinks: the first tokens, and the first generated
// ones that the placement protects.
uint64_t SinksOf(const Sequence& sequence, int page_index) {
  uint64_t slots = page_index == 0 ? SlotMask(0, kSinkTokens) : 0;
  const int64_t first = int64_t{page_index} * kPageTokens;
  for (int64_t i = 0; i < sequence.spec.placement.sinks; ++i) {
    const int64_t slot = sequence.spec.prompt_tokens + i - first;
    if (slot >= 0 && slot < kPageTokens) slots |= uint64_t{1} << slot;
  }
  return slots;
}

// Puts distrusted nodes behind the others.
void SetOrder(RemoteState& remote, std::vector<int> order) {
  const auto others = std::stable_partition(
      order.begin(), order.end(),
      [&](int node) { return !remote.distrusted.contains(node); });
  remote.num_trusted = static_cast<int>(others - order.begin());
  remote.order = std::move(order);
}

}  // namespace

RemoteTier::RemoteTier(const TieringOptions& options,
                       const KvGeometry& geometry, Device& device)
    : options_(options),
      geometry_(geometry),
      executor_(kExecutorThreads),
      stores_(device, geometry, executor_, inbox_, options.rpc_timeout,
              kStoreBytes) {}

absl::StatusOr<std::unique_ptr<RemoteTier>> RemoteTier::Create(
    const TieringOptions& options, const KvGeometry& geometry, Device& device,
    const NodeAccess& access) {
  std::unique_ptr<RemoteTier> tier(new RemoteTier(options, geometry, device));
  tier->clock_ = access.clock;
  tier->stores_.SetFilter(access.stored_rows_filter);
  for (const std::string& address : options.memory_nodes) {
    NodeLinkOptions link;
    link.index = static_cast<int>(tier->links_.size());
    link.address = address;
    link.tiering = options;
    link.geometry = geometry;
    link.executor = &tier->executor_;
    link.inbox = &tier->inbox_;
    FARKV_ASSIGN_OR_RETURN(auto connected,
                           NodeLink::Connect(std::move(link), access));
    // From here on it ends like the others: its callbacks refer to it.
    tier->links_.push_back(std::move(connected));
    const NodeLink& added = *tier->links_.back();
    for (const auto& other : tier->links_) {
      if (other.get() == &added || other->node_id() != added.node_id())
        continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--memory-nodes names node ", other->node_id(),
                       " twice: ", other->address(), " and ", address));
    }
  }
  return tier;
}

// First the links end their operations, then the executor finishes the
// callbacks, which still refer to the links; then all may go.
RemoteTier::~RemoteTier() {
  stores_.WaitForCopies();
  for (auto& link : links_) link->BeginStop();
  for (auto& link : links_) link->Stop();
  auto barrier = std::make_shared<absl::Barrier>(kExecutorThreads + 1);
  for (int i = 0; i < kExecutorThreads; ++i) {
    executor_.Execute([barrier] { barrier->Block(); });
  }
  barrier->Block();
  for (const auto& link : links_) LogAccount(*link);
}

void RemoteTier::Opened(Sequence& sequence) {
  std::vector<std::string> ids;
  for (const auto& link : links_) ids.push_back(link->node_id());
  RemoteState& remote = sequence.remote;
  SetOrder(remote, NodeOrder(sequence.spec.session, ids));
  remote.nodes.resize(links_.size());
  remote.pages.resize(
      static_cast<size_t>(sequence.spec.max_tokens / kPageTokens));
  Reserve(sequence);
}

void RemoteTier::Closed(Sequence& sequence) {
  stores_.WaitForCopies();
  for (size_t node = 0; node < links_.size(); ++node) {
    RemoteState::OnNode& on = sequence.remote.nodes[node];
    if (on.session != nullptr) links_[node]->CloseSession(on.session);
    on.session = nullptr;
  }
}

bool RemoteTier::LookAtNodes(Sequence& sequence) const {
  const absl::Time now = Now();
  bool back = false;
  for (const auto& link : links_) {
    RemoteState::OnNode& on =
        sequence.remote.nodes[static_cast<size_t>(link->index())];
    const bool before = on.answers;
    on.answers =
        on.session != nullptr && on.session->Usable(now) && link->healthy();
    back |= on.answers && !before;
  }
  return back;
}

void RemoteTier::Poll(SequenceMap& sequences, T0Lines& lines) {
  for (auto& [id, sequence] : sequences) progress_ |= LookAtNodes(*sequence);
  for (TierEvent& event : inbox_.TakeAll()) {
    if (auto* ready = std::get_if<SessionReady>(&event)) {
      Handle(std::move(*ready), sequences);
    } else if (auto* reserved = std::get_if<PagesReserved>(&event)) {
      Handle(std::move(*reserved), sequences);
    } else if (auto* moved = std::get_if<PagesMoved>(&event)) {
      Handle(*moved, sequences);
    } else if (auto* evicted = std::get_if<PagesEvicted>(&event)) {
      Handle(*evicted, sequences);
    } else if (auto* stored = std::get_if<PageStored>(&event)) {
      Handle(*stored, sequences, lines);
      progress_ = true;
    } else if (auto* lost = std::get_if<SessionLost>(&event)) {
      Handle(*lost, sequences);
    }
  }
}

void RemoteTier::Handle(SessionReady event, SequenceMap& sequences) {
  Sequence* sequence = Find(sequences, event.sequence);
  if (sequence == nullptr) {  // closed meanwhile
    if (event.session.ok()) link(event.node).CloseSession(*event.session);
    return;
  }
  RemoteState::OnNode& on =
      sequence->remote.nodes[static_cast<size_t>(event.node)];
  on.opening = false;
  if (event.session.ok()) {
    on.session = *std::move(event.session);
  } else {
    on.retry_at = Now() + kFirstRetry;
  }
  Reserve(*sequence);
}

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
  Sequence* sequence = Find(sequences, event.sequence);
  if (sequence == nullptr) return;
  RemoteState& remote = sequence->remote;
  remote.reserving = false;
  if (absl::Status s = RecordPlaces(*sequence, event); !s.ok()) {
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

// A page that moved is read at its new place from the next step on; what was
// fetched ahead of it is dropped, so that a step reads one form of a page. One
// of which nobody knows stays `moving`: T0 takes no rows of it meanwhile.
void RemoteTier::Handle(const PagesMoved& event, SequenceMap& sequences) {
  Sequence* sequence = Find(sequences, event.sequence);
  if (sequence == nullptr) return;
  RemoteState& remote = sequence->remote;
  if (event.unanswered) {
    remote.compress_retry_at = Now() + kRefused;
    return;
  }
  const bool same_session =
      remote.nodes[static_cast<size_t>(event.node)].session == event.session;
  absl::Status refusal = event.moved.status();
  for (size_t i = 0; i < event.asked.size(); ++i) {
    const TierChange& asked = event.asked[i];
    RemotePage& page = remote.pages[static_cast<size_t>(asked.page.page_index)];
    if (page.node != event.node || !same_session) continue;
    page.moving = false;
    if (!event.moved.ok()) continue;
    const PagePlacement& placement = (*event.moved)[i];
    if (!placement.status.ok()) {
      refusal.Update(placement.status);
      continue;
    }
    PagePlace& place = page.places[static_cast<size_t>(asked.page.layer)];
    place.generation = placement.generation;
    place.tier = asked.tier;
    place.t2_bits = asked.t2_bits;
    if (asked.page.layer == 0) ++sequence->stats.compressed_pages;
    for (PagePlace& each : page.places) each.map = MappedPage();
  }
  sequence->reads = SequenceReads();
  sequence->promotion = SequencePromotion();
  if (refusal.ok()) return;
  remote.compress_retry_at = Now() + RetryAfterOf(refusal).value_or(kRefused);
  if (!std::exchange(compress_refusal_logged_, true)) {
    spdlog::warn("node {}: pages stay in T1 (logged once): {}",
                 link(event.node).node_id(), std::string(refusal.message()));
  }
}

void RemoteTier::Handle(const PageStored& event, SequenceMap& sequences,
                        T0Lines& lines) {
  stores_.Finished(event);
  Sequence* sequence = Find(sequences, event.sequence);
  if (sequence == nullptr) return;
  Page& page = sequence->table.page(event.page_index);
  RemotePage& remote =
      sequence->remote.pages[static_cast<size_t>(event.page_index)];
  if (page.state != StoreState::kStoring) return;
  const bool same_place = remote.node == event.node &&
                          remote.places.front().generation == event.generation;
  if (event.status.ok() && same_place) {
    page.state = StoreState::kStored;
    remote.failures = 0;
    ++sequence->stats.stored_pages;
    sequence->stats.stored_bytes += static_cast<int64_t>(event.rows_bytes);
    LookAtNodes(*sequence);  // the session may be newer than the last look
    DropUnwanted(*sequence, page, lines);
  } else {
    page.state = StoreState::kFull;
    remote.retry_at = Now() + kFirstRetry * (1 << std::min(remote.failures++,
                                                           kMaxRetryDoublings));
  }
  DropDead(*sequence, page, lines);
  Store(*sequence, lines);
}

// Pages that are still whole in T0 are stored again, elsewhere or under the
// new epoch; of the others the cold rows are gone.
void RemoteTier::Handle(const SessionLost& event, SequenceMap& sequences) {
  Sequence* sequence = Find(sequences, event.sequence);
  if (sequence == nullptr) return;
  RemoteState& remote = sequence->remote;
  remote.nodes[static_cast<size_t>(event.node)].session = nullptr;
  for (size_t i = 0; i < remote.pages.size(); ++i) {
    if (remote.pages[i].node != event.node) continue;
    const int index = static_cast<int>(i);
    if (index < sequence->table.num_pages()) {
      Page& page = sequence->table.page(index);
      page.eviction_due = false;
      if (page.cold() != 0) {
        page.state = StoreState::kLost;
        continue;
      }
      if (page.state == StoreState::kStored) page.state = StoreState::kFull;
    }
    remote.pages[i] = RemotePage();
    remote.first_unreserved = std::min(remote.first_unreserved, index);
    remote.first_unstored = std::min(remote.first_unstored, index);
  }
  Reserve(*sequence);
}

void RemoteTier::Advance(Sequence& sequence, const T0Lines& lines) {
  Reserve(sequence);
  Store(sequence, lines);
  Evict(sequence);
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

void RemoteTier::Store(Sequence& sequence, const T0Lines& lines) {
  RemoteState& remote = sequence.remote;
  const absl::Time now = Now();
  int& first = remote.first_unstored;
  for (int i = first; i < sequence.table.num_pages(); ++i) {
    Page& page = sequence.table.page(i);
    if (page.state == StoreState::kOpen) return;
    if (page.state == StoreState::kStored || page.state == StoreState::kLost ||
        page.state == StoreState::kGone) {
      if (i == first) ++first;
      continue;
    }
    if (page.state == StoreState::kStoring) continue;
    if (!stores_.HasRoom()) return;
    const RemotePage& place = remote.pages[static_cast<size_t>(i)];
    if (place.node < 0 || now < place.retry_at) continue;
    const auto& session = remote.nodes[static_cast<size_t>(place.node)].session;
    if (session == nullptr || !session->Usable(now) ||
        !link(place.node).healthy()) {
      continue;
    }
    page.state = StoreState::kStoring;
    stores_.Start(sequence.id, sequence.spec.session, page, place, lines,
                  link(place.node));
  }
}

bool RemoteTier::MayCompress(const Sequence& sequence) {
  return Now() >= sequence.remote.compress_retry_at;
}

void RemoteTier::Compress(Sequence& sequence, std::span<const int> pages) {
  RemoteState& remote = sequence.remote;
  std::vector<std::vector<TierChange>> by_node(links_.size());
  for (const int index : pages) {
    // Kept in T0 because its node did not answer: a later plan drops it.
    if (sequence.table.page(index).resident != 0) continue;
    RemotePage& page = remote.pages[static_cast<size_t>(index)];
    std::vector<TierChange>& changes = by_node[static_cast<size_t>(page.node)];
    if (!changes.empty() &&
        static_cast<int>(changes.size()) + geometry_.num_layers >
            kMaxCompressed) {
      continue;
    }
    page.moving = true;
    const uint64_t sinks = SinksOf(sequence, index);
    for (int layer = 0; layer < geometry_.num_layers; ++layer) {
      const uint64_t* live =
          sequence.table.page(index).layer_live(layer, geometry_.num_kv_heads);
      TierChange& change = changes.emplace_back();
      change.page = {layer, index};
      change.t2_bits = options_.t2_bits;
      for (int h = 0; h < geometry_.num_kv_heads; ++h) {
        change.exceptions.push_back(live[h] & sinks);
      }
    }
  }
  for (size_t node = 0; node < by_node.size(); ++node) {
    if (by_node[node].empty()) continue;
    links_[node]->ChangeTiers(sequence.id, remote.nodes[node].session,
                              std::move(by_node[node]));
  }
}

bool RemoteTier::Idle() const {
  return stores_.idle() &&
         std::all_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->pending() == 0; });
}

// When a store, a reservation or a session that failed is asked for again, or a
// node that is lost is looked at again; those that are due already are under
// way.
absl::Time RemoteTier::NextRetry(const Sequence& sequence,
                                 absl::Time now) const {
  const RemoteState& remote = sequence.remote;
  absl::Time next = absl::InfiniteFuture();
  const auto note = [&](absl::Time retry) {
    if (retry > now) next = std::min(next, retry);
  };
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const Page& in_t0 = sequence.table.page(i);
    if (in_t0.state == StoreState::kStored && in_t0.resident != 0 &&
        !remote.Answers(i)) {
      note(now + kFirstRetry);
    }
    if (in_t0.state != StoreState::kFull) continue;
    const RemotePage& page = remote.pages[static_cast<size_t>(i)];
    const int node = page.node >= 0 ? page.node : NodeFor(sequence, i);
    if (node < 0 || !link(node).healthy()) {
      note(now + kFirstRetry);
      continue;
    }
    const RemoteState::OnNode& on = remote.nodes[static_cast<size_t>(node)];
    note(page.retry_at);
    if (page.node < 0) note(remote.reserve_retry_at);
    if (on.session == nullptr) {
      note(on.retry_at);
    } else if (!on.session->Usable(now)) {
      note(now + kFirstRetry);  // its lease is renewed meanwhile
    }
  }
  return next;
}

bool RemoteTier::WaitForProgress(const SequenceMap& sequences,
                                 absl::Duration timeout) {
  const bool idle = Idle();  // whatever has ended since is an event
  const absl::Time now = Now();
  absl::Time retry = absl::InfiniteFuture();
  for (const auto& [id, sequence] : sequences) {
    retry = std::min(retry, NextRetry(*sequence, now));
  }
  if (idle && retry == absl::InfiniteFuture()) {
    return WaitForEvents(absl::ZeroDuration());
  }
  WaitForEvents(std::min(timeout, retry - now));
  return true;
}

int64_t RemoteTier::UnstoredPages(const Sequence& sequence) {
  int64_t count = 0;
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const StoreState state = sequence.table.page(i).state;
    if (state == StoreState::kFull || state == StoreState::kStoring) ++count;
  }
  return count;
}

}  // namespace farkv

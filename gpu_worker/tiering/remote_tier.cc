#include "gpu_worker/tiering/remote_tier.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/remote_tier_impl.h"
#include "gpu_worker/tiering/stripes.h"

namespace farkv {
namespace {

// Checks rows and sends stores; two, so that a long check delays nobody.
constexpr int kExecutorThreads = 2;
constexpr uint64_t kStoreBytes = uint64_t{64} << 20;

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

void RemoteTier::PreferNodes(Sequence& sequence) const {
  std::vector<std::string> ids;
  for (const auto& link : links_) ids.push_back(link->node_id());
  SetOrder(sequence.remote, NodeOrder(sequence.spec.session, ids));
}

void RemoteTier::Opened(Sequence& sequence) {
  RemoteState& remote = sequence.remote;
  PreferNodes(sequence);
  remote.nodes.resize(links_.size());
  remote.pages.resize(
      static_cast<size_t>(sequence.spec.max_tokens / kPageTokens));
  Reserve(sequence);
}

// A node that still has such a page must forget it first: one that goes there
// again would be refused, because the page is stored, with other rows.
void RemoteTier::GiveUp(Sequence& sequence,
                        std::span<const int64_t> positions) {
  RemoteState& remote = sequence.remote;
  std::map<int, std::vector<PageName>> left;
  for (const int64_t position : positions) {
    const auto index = static_cast<int>(position / kPageTokens);
    Page& page = sequence.table.page(index);
    const int node = remote.pages[static_cast<size_t>(index)].node;
    for (int layer = 0; node >= 0 && layer < geometry_.num_layers; ++layer) {
      left[node].push_back({layer, index});
    }
    page.state = StoreState::kLost;
    page.sent = false;
    page.eviction_due = false;
    remote.pages[static_cast<size_t>(index)] = RemotePage();
    remote.first_unreserved = std::min(remote.first_unreserved, index);
  }
  for (const auto& [node, names] : left) Free(sequence, node, names);
  remote.continues = true;
  PreferNodes(sequence);
  Reserve(sequence);
}

// The calls of a link come in order, so that a reservation behind it finds the
// pages gone. Of one that fails they come back with the session's end.
void RemoteTier::Free(const Sequence& sequence, int node,
                      std::span<const PageName> names) {
  const auto& session =
      sequence.remote.nodes[static_cast<size_t>(node)].session;
  if (session == nullptr || !link(node).healthy()) return;
  while (!names.empty()) {
    const auto some =
        names.first(std::min<size_t>(names.size(), kMaxPlanItems));
    link(node).Evict(sequence.id, session, {}, {some.begin(), some.end()}, {});
    names = names.subspan(some.size());
  }
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
  Sequence* sequence = FindSequence(sequences, event.sequence);
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
    ++sequence->remote.first_choice;
  }
  Reserve(*sequence);
}

// Pages that are still whole in T0 are stored again, elsewhere or under the
// new epoch; of the others the cold rows are gone.
void RemoteTier::Handle(const SessionLost& event, SequenceMap& sequences) {
  Sequence* sequence = FindSequence(sequences, event.sequence);
  if (sequence == nullptr) return;
  RemoteState& remote = sequence->remote;
  remote.nodes[static_cast<size_t>(event.node)].session = nullptr;
  // A session that is opened anew there would answer without them.
  if (sequence->pushdown.pages.erase(event.node) > 0) {
    sequence->pushdown.is_incomplete = true;
    ++sequence->stats.lost_score_collections;
  }
  for (size_t i = 0; i < remote.pages.size(); ++i) {
    if (remote.pages[i].node != event.node) continue;
    const int index = static_cast<int>(i);
    if (index < sequence->table.num_pages()) {
      Page& page = sequence->table.page(index);
      page.eviction_due = false;
      // One that is given up already has only lost its next place.
      if (page.cold() != 0 && page.state != StoreState::kLost) {
        page.state = StoreState::kLost;
        continue;
      }
      if (page.state == StoreState::kStored) page.state = StoreState::kFull;
      page.sent = false;
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

bool RemoteTier::AnyHealthy() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->healthy(); });
}

bool RemoteTier::Idle() const {
  return stores_.idle() &&
         std::all_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->pending() == 0; });
}

}  // namespace farkv

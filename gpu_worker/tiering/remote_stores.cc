// Full pages are stored, oldest first, and again after a failure.
#include <algorithm>

#include "gpu_worker/tiering/destruction.h"
#include "gpu_worker/tiering/remote_tier_impl.h"
#include "gpu_worker/tiering/tier_moves.h"

namespace farkv {
namespace {

constexpr int kMaxRetryDoublings = 5;

}  // namespace

void RemoteTier::Handle(const PageStored& event, SequenceMap& sequences,
                        T0Lines& lines) {
  stores_.Finished(event);
  Sequence* sequence = FindSequence(sequences, event.sequence);
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
    page.sent = same_place;
    remote.retry_at = Now() + kFirstRetry * (1 << std::min(remote.failures++,
                                                           kMaxRetryDoublings));
  }
  DropDead(*sequence, page, lines);
  Store(*sequence, lines);
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
    RemotePage& place = remote.pages[static_cast<size_t>(i)];
    if (place.node < 0 || now < place.retry_at) continue;
    const auto& session = remote.nodes[static_cast<size_t>(place.node)].session;
    if (session == nullptr || !session->Usable(now) ||
        !link(place.node).healthy()) {
      continue;
    }
    const absl::Status started =
        stores_.Start(sequence.id, sequence.spec.session, page, place, lines,
                      link(place.node));
    if (!started.ok()) {
      // Its rows stay in T0 meanwhile.
      place.retry_at = now + kFirstRetry;
      return;
    }
    page.state = StoreState::kStoring;
    page.sent = true;
  }
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

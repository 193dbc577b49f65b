// The threads of a NodeLink: one for commands, leases and reconnection, one
// for heartbeats.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {
namespace {

// Heartbeats that may go unanswered before a node counts as lost.
constexpr int kSilentHeartbeats = 4;

}  // namespace

void NodeLink::Main() {
  for (;;) {
    RunTimers();
    const absl::Time next =
        healthy() ? std::min(next_renewal_, NextRepeat()) : next_connect_;
    Command command;
    if (NextCommand(next - clock_.Now(), command)) {
      Run(std::move(command));
      continue;
    }
    {
      absl::MutexLock lock(&mutex_);
      if (!stop_) continue;
    }
    return CloseAll();
  }
}

// On stop. The own session, under which the link is connected, goes last.
void NodeLink::CloseAll() {
  while (!sessions_.empty()) RunClose({sessions_.back().session});
  RunClose({own_session_});
}

bool NodeLink::NextCommand(absl::Duration timeout, Command& command) {
  absl::MutexLock lock(&mutex_);
  auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !commands_.empty() || stop_ || just_lost_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&woken), timeout);
  just_lost_ = false;
  if (commands_.empty()) return false;
  command = std::move(commands_.front());
  commands_.pop_front();
  running_ = true;
  return true;
}

void NodeLink::Run(Command command) {
  bool stopping = false;
  {
    absl::MutexLock lock(&mutex_);
    stopping = stop_;
  }
  if (stopping && !std::holds_alternative<CloseCommand>(command)) {
    Cancel(std::move(command));
  } else if (auto* open = std::get_if<OpenCommand>(&command)) {
    RunOpen(*open);
  } else if (auto* reserve = std::get_if<ReserveCommand>(&command)) {
    TierPlanCall call;
    call.reserve = std::move(reserve->pages);
    RunPlan(reserve->sequence, reserve->session, std::move(call)).IgnoreError();
  } else if (auto* change = std::get_if<ChangeCommand>(&command)) {
    TierPlanCall call;
    call.tier_changes = std::move(change->changes);
    RunPlan(change->sequence, change->session, std::move(call)).IgnoreError();
  } else if (auto* evict = std::get_if<EvictCommand>(&command)) {
    RunEvict(std::move(*evict));
  } else {
    RunClose(std::get<CloseCommand>(command));
  }
  {
    absl::MutexLock lock(&mutex_);
    running_ = false;
  }
  options_.inbox->Push(CommandDone{});
}

void NodeLink::Cancel(Command command) {
  const absl::Status why = absl::CancelledError(absl::StrCat(
      "the link to memory node ", options_.address, " is stopping"));
  if (auto* open = std::get_if<OpenCommand>(&command)) {
    options_.inbox->Push(SessionReady{open->sequence, options_.index, why});
  } else if (auto* reserve = std::get_if<ReserveCommand>(&command)) {
    options_.inbox->Push(PagesReserved{
        reserve->sequence, options_.index, std::move(reserve->pages), why, {}});
  } else if (auto* change = std::get_if<ChangeCommand>(&command)) {
    options_.inbox->Push(PagesMoved{change->sequence, options_.index,
                                    change->session, std::move(change->changes),
                                    why, false});
  } else if (auto* evict = std::get_if<EvictCommand>(&command)) {
    options_.inbox->Push(PagesEvicted{evict->sequence, options_.index,
                                      std::move(evict->pages), why});
  }
}

void NodeLink::RunOpen(const OpenCommand& command) {
  auto session = std::make_shared<RemoteSession>();
  session->id = command.session;
  SessionReady ready{command.sequence, options_.index, session};
  if (!healthy()) {
    ready.session = absl::UnavailableError(
        absl::StrCat("memory node ", options_.address, " is lost"));
  } else if (absl::StatusOr<SessionGrant> grant =
                 OpenOne(*session, command.continues);
             !grant.ok()) {
    ready.session = grant.status();
    if (ReasonOf(grant.status()) == ErrorReason::kDraining) NoteDraining(true);
  } else {
    sessions_.push_back({command.sequence, session});
  }
  options_.inbox->Push(std::move(ready));
}

// After an answer that never came the same call is repeated: the node then
// gives the reply it has kept (or ABORTED while the first still runs). A
// refusal that states a reason is an answer.
absl::StatusOr<TierPlanResult> NodeLink::Apply(RemoteSession& session,
                                               const TierPlanCall& call) {
  if (!healthy()) {
    return absl::UnavailableError(
        absl::StrCat("memory node ", options_.address, " is lost"));
  }
  absl::StatusOr<TierPlanResult> result =
      control_.apply_tier_plan(call, CallTimeout());
  const bool ambiguous = (absl::IsUnavailable(result.status()) ||
                          absl::IsDeadlineExceeded(result.status()) ||
                          absl::IsAborted(result.status())) &&
                         ReasonOf(result.status()) == ErrorReason::kUnspecified;
  if (ambiguous) {
    session.unanswered = call;
    session.repeat_at = clock_.Now() + options_.repeat_pause;
  } else {
    session.unanswered.reset();
    ++session.next_number;
  }
  if (result.ok()) NoteDraining(result->draining);
  return result;
}

void NodeLink::RunEvict(EvictCommand command) {
  TierPlanCall call;
  call.evictions = std::move(command.evictions);
  call.free = std::move(command.free);
  absl::Status status =
      RunPlan(command.sequence, command.session, std::move(call));
  options_.inbox->Push(PagesEvicted{command.sequence, options_.index,
                                    std::move(command.pages),
                                    std::move(status)});
}

// A call that was sent without an answer is repeated in place of `own`, which
// then counts as refused: its caller will ask again.
absl::Status NodeLink::RunPlan(SequenceId sequence,
                               const std::shared_ptr<RemoteSession>& session,
                               TierPlanCall own) {
  const bool repeat = session->unanswered.has_value();
  TierPlanCall call;
  if (repeat) {
    call = *session->unanswered;
  } else {
    call = own;
    call.session = session->id;
    call.epoch = epoch();
    call.sequence_number = session->next_number;
  }
  const absl::StatusOr<TierPlanResult> result = Apply(*session, call);
  const bool reserves = !call.reserve.empty();
  if (reserves) ReportReserved(sequence, call, result);
  if (!call.tier_changes.empty()) {
    ReportMoved(sequence, session, call.tier_changes, result,
                session->unanswered.has_value());
  }
  if (!repeat) return result.status();
  const absl::StatusOr<TierPlanResult> passed_over(
      absl::AbortedError("an earlier plan had to be repeated first"));
  if (!own.reserve.empty() && !reserves) {
    ReportReserved(sequence, own, passed_over);
  }
  if (!own.tier_changes.empty()) {
    ReportMoved(sequence, session, own.tier_changes, passed_over, false);
  }
  return passed_over.status();
}

void NodeLink::ReportReserved(SequenceId sequence, const TierPlanCall& call,
                              const absl::StatusOr<TierPlanResult>& result) {
  PagesReserved reserved{
      sequence, options_.index, call.reserve, std::vector<PagePlacement>(), {}};
  if (!result.ok()) {
    reserved.placements = result.status();
  } else if (absl::Status s = CheckPlaces(reserved.asked, result->reserved);
             !s.ok()) {
    reserved.placements = s;
  } else {
    reserved.placements = result->reserved;
    if (absl::Status mapped = MapPages(reserved); !mapped.ok()) {
      reserved.placements = mapped;
    }
  }
  options_.inbox->Push(std::move(reserved));
}

void NodeLink::ReportMoved(SequenceId sequence,
                           const std::shared_ptr<RemoteSession>& session,
                           const std::vector<TierChange>& asked,
                           const absl::StatusOr<TierPlanResult>& result,
                           bool unanswered) {
  PagesMoved moved{
      sequence,  options_.index, session, asked, std::vector<PagePlacement>(),
      unanswered};
  std::vector<PageName> names;
  for (const TierChange& change : asked) names.push_back(change.page);
  if (!result.ok()) {
    moved.moved = result.status();
  } else if (absl::Status s = CheckPlaces(names, result->moved); !s.ok()) {
    moved.moved = s;
  } else {
    moved.moved = result->moved;
  }
  options_.inbox->Push(std::move(moved));
}

absl::Status NodeLink::CheckPlaces(
    std::span<const PageName> asked,
    std::span<const PagePlacement> placements) const {
  if (placements.size() != asked.size()) {
    return absl::InternalError(absl::StrCat(
        "memory node ", options_.address, " answered ", placements.size(),
        " places for ", asked.size(), " pages"));
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    const PageName& placed = placements[i].page;
    if (placed == asked[i]) continue;
    return absl::InternalError(absl::StrCat(
        "memory node ", options_.address, " answered a place of layer ",
        placed.layer, ", page ", placed.page_index, ", asked was layer ",
        asked[i].layer, ", page ", asked[i].page_index));
  }
  return absl::OkStatus();
}

absl::Status NodeLink::CheckRunning() const {
  absl::MutexLock lock(&mutex_);
  if (stop_) {
    return absl::CancelledError(absl::StrCat("the link to memory node ",
                                             options_.address, " is stopping"));
  }
  if (!healthy_) {
    return absl::UnavailableError(
        absl::StrCat("memory node ", options_.address, " is lost"));
  }
  return absl::OkStatus();
}

// With --cold=auto a page that cannot be mapped is fetched instead. The first
// failure ends the mapping of a plan: while a try waits for its node, no lease
// is renewed and nobody connects again.
absl::Status NodeLink::MapPages(PagesReserved& reserved) {
  if (map_ == nullptr) return absl::OkStatus();
  const size_t page_bytes = PageLayout::T1(options_.geometry).stride;
  const auto new_ticket = [this]() -> absl::StatusOr<NodeMap::Ticket> {
    FARKV_ASSIGN_OR_RETURN(SessionGrant grant, OpenOne(*own_session_));
    return NodeMap::Ticket{own_session_->id, grant.token};
  };
  absl::Status status;
  for (const PagePlacement& place : *reserved.placements) {
    status = CheckRunning();
    if (!status.ok()) break;
    absl::StatusOr<MappedPage> page =
        map_->Find(place.slab_id, place.slab_offset, page_bytes, new_ticket);
    status = page.status();
    if (!status.ok()) break;
    reserved.maps.push_back(*std::move(page));
  }
  reserved.maps.resize(reserved.placements->size());
  if (options_.tiering.cold == ColdMode::kMap) return status;
  return absl::OkStatus();
}

// Best effort: a session that cannot be closed ends with its lease.
void NodeLink::RunClose(const CloseCommand& command) {
  std::erase_if(sessions_, [&](const OpenedSession& opened) {
    return opened.session == command.session;
  });
  const bool lost = command.session->lost.load(std::memory_order_acquire);
  command.session->lost.store(true, std::memory_order_release);
  if (lost || !healthy()) return;
  control_
      .close_session(command.session->id, epoch(),
                     command.session->next_number++, CallTimeout())
      .IgnoreError();
}

absl::Time NodeLink::NextRepeat() const {
  absl::Time next = absl::InfiniteFuture();
  for (const OpenedSession& opened : sessions_) {
    if (!opened.session->unanswered.has_value()) continue;
    next = std::min(next, opened.session->repeat_at);
  }
  return next;
}

// A plan that was sent without an answer may have taken effect: a page that it
// moved is readable at its old place for one more lease only. One at a time, in
// turn: each may take a whole call timeout, and renewals and commands come in
// between.
void NodeLink::RepeatOne() {
  const absl::Time due = NextRepeat();
  for (const OpenedSession& opened : sessions_) {
    if (!opened.session->unanswered.has_value()) continue;
    if (opened.session->repeat_at > due) continue;
    const OpenedSession chosen = opened;
    // Also when the call is refused before it is sent.
    chosen.session->repeat_at = clock_.Now() + options_.repeat_pause;
    return RunPlan(chosen.sequence, chosen.session, TierPlanCall())
        .IgnoreError();
  }
}

void NodeLink::RunTimers() {
  const absl::Time now = clock_.Now();
  bool is_healthy = false;
  {
    absl::MutexLock lock(&mutex_);
    if (stop_) return;
    is_healthy = healthy_;
  }
  if (is_healthy) {
    if (now >= next_renewal_) RenewLeases();
    if (now >= NextRepeat()) {
      RepeatOne();
      // A command may take another call timeout.
      if (CheckRunning().ok() && clock_.Now() >= next_renewal_) RenewLeases();
    }
  } else if (now >= next_connect_) {
    // A failure only means another try later; a new reason is worth a line.
    const absl::Status connected = ConnectNow();
    const bool back = connected.ok();
    if (!back && connected.message() != refusal_) {
      spdlog::warn("memory node {} ({}) cannot be used again: {}", node_id_,
                   options_.address, std::string(connected.message()));
    }
    refusal_ = std::string(connected.message());
    next_connect_ = clock_.Now() + std::max(options_.tiering.heartbeat,
                                            absl::Milliseconds(200));
    if (back) {
      spdlog::info("memory node {} ({}) is back", node_id_, options_.address);
      return;  // its sessions are renewed first
    }
  }
  LoseEndedSessions();
}

void NodeLink::RenewLeases() {
  std::vector<std::shared_ptr<RemoteSession>> all = {own_session_};
  for (const OpenedSession& opened : sessions_) all.push_back(opened.session);
  next_renewal_ = clock_.Now() + granted_lease_ / 3;
  const std::span<const std::shared_ptr<RemoteSession>> sessions(all);
  for (size_t i = 0; i < sessions.size(); i += kMaxRenewals) {
    RenewBatch(sessions.subspan(
        i, std::min<size_t>(kMaxRenewals, sessions.size() - i)));
  }
}

void NodeLink::RenewBatch(
    std::span<const std::shared_ptr<RemoteSession>> batch) {
  std::vector<SessionId> ids;
  for (const auto& session : batch) ids.push_back(session->id);
  const absl::Time sent = clock_.Now();
  renewals_sent_ = sent;
  absl::StatusOr<RenewResult> result = control_.renew_leases(
      epoch(), ids, options_.tiering.lease, CallTimeout());
  if (!result.ok()) {
    // Tried again soon; until then the fences stand where they are.
    next_renewal_ = std::min(next_renewal_, sent + granted_lease_ / 10);
    if (ReasonOf(result.status()) == ErrorReason::kStaleEpoch) {
      LoseNode("another epoch");
    }
    return;
  }
  NoteDraining(result->draining);
  for (size_t i = 0; i < std::min(batch.size(), result->renewals.size()); ++i) {
    const LeaseRenewal& renewal = result->renewals[i];
    if (renewal.status.ok()) {
      SetFence(*batch[i], sent, renewal.lease);
      continue;
    }
    if (batch[i] == own_session_) {
      LoseNode("own session expired");
      continue;
    }
    batch[i]->lost.store(true, std::memory_order_release);
    for (const OpenedSession& opened : sessions_) {
      if (opened.session != batch[i]) continue;
      options_.inbox->Push(
          SessionLost{opened.sequence, options_.index, renewal.status});
    }
  }
  std::erase_if(sessions_, [](const OpenedSession& opened) {
    return opened.session->lost.load(std::memory_order_acquire);
  });
}

// A thread of its own: a control call that hangs must not hide the loss.
void NodeLink::HeartbeatMain() {
  for (;;) {
    bool disconnected = false;
    bool silent = false;
    {
      absl::MutexLock lock(&mutex_);
      auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return heartbeats_stop_ || (peer_lost_ && healthy_);
      };
      mutex_.AwaitWithTimeout(absl::Condition(&woken),
                              options_.tiering.heartbeat);
      if (heartbeats_stop_) return;
      if (!healthy_) continue;
      disconnected = peer_lost_;
      // Heartbeats and not time: a worker that was stalled has asked nobody.
      silent = open_heartbeats_ >= kSilentHeartbeats;
      if (!silent) ++open_heartbeats_;
    }
    if (disconnected) {
      LoseNode("connection lost");
    } else if (silent) {
      LoseNode("no heartbeat");
    } else {
      SendHeartbeat();
    }
  }
}

void NodeLink::SendHeartbeat() {
  MessageHeader header;
  header.type = MessageType::kPingRequest;
  // The answer counts, not what it says; a refusal is a missing answer.
  Submit(header, {}, kSilentHeartbeats * options_.tiering.heartbeat,
         [](absl::StatusOr<Message>) {})
      .IgnoreError();
}

void NodeLink::LoseNode(const std::string& why) {
  PeerId peer;
  {
    absl::MutexLock lock(&mutex_);
    if (!healthy_) return;
    healthy_ = false;
    just_lost_ = true;
    peer = peer_;
  }
  spdlog::warn("memory node {} ({}) is lost: {}", node_id_, options_.address,
               why);
  transport_->ClosePeer(peer);
}

// The node counts a lease from when it got the renewal, answered or not: no
// later than one call timeout, a third of a lease at most, after it was sent.
// One and a half leases after the last one the sessions have ended there for
// certain, and may be opened anew.
void NodeLink::LoseEndedSessions() {
  const absl::Time now = clock_.Now();
  if (now - renewals_sent_ < granted_lease_ * 3 / 2) return;
  const int64_t ended = absl::ToUnixNanos(now - granted_lease_ / 2);
  for (const OpenedSession& opened : sessions_) {
    if (opened.session->fence_ns.load(std::memory_order_acquire) > ended) {
      continue;
    }
    opened.session->lost.store(true, std::memory_order_release);
    options_.inbox->Push(SessionLost{
        opened.sequence, options_.index,
        absl::UnavailableError(absl::StrCat("memory node ", options_.address,
                                            " has renewed no lease"))});
  }
  std::erase_if(sessions_, [](const OpenedSession& opened) {
    return opened.session->lost.load(std::memory_order_acquire);
  });
}

void NodeLink::LoseSessions(const absl::Status& why) {
  spdlog::warn("{}: {} sessions are lost", std::string(why.message()),
               sessions_.size());
  for (const OpenedSession& opened : sessions_) {
    opened.session->lost.store(true, std::memory_order_release);
    options_.inbox->Push(SessionLost{opened.sequence, options_.index, why});
  }
  sessions_.clear();
}

}  // namespace farkv

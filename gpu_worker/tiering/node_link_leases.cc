// The leases of a NodeLink's sessions: how they are renewed, and how they end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {

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
    } else if (sent - renewals_answered_ >= granted_lease_) {
      // Heartbeats may still be answered, but nothing can be opened or
      // reserved, so sequences must not wait for it.
      LoseNode("no lease renewed");
    }
    return;
  }
  renewals_answered_ = sent;
  close_unanswered_ = false;  // it answers again
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
  unclosed_.clear();
  close_unanswered_ = false;
}

void NodeLink::RunClose(const CloseCommand& command) {
  std::erase_if(sessions_, [&](const OpenedSession& opened) {
    return opened.session == command.session;
  });
  if (command.session->lost.exchange(true, std::memory_order_acq_rel)) return;
  if (CloseOnNode(*command.session)) return;
  CloseLater(command.session);
}

void NodeLink::CloseLater(std::shared_ptr<RemoteSession> session) {
  unclosed_.push_back(std::move(session));
  next_late_close_ = clock_.Now() + options_.repeat_pause;
}

// On stop. The own session, under which the link is connected, goes last.
void NodeLink::CloseAll() {
  while (!unclosed_.empty()) {
    CloseOnNode(*unclosed_.back());
    unclosed_.pop_back();
  }
  while (!sessions_.empty()) RunClose({sessions_.back().session});
  RunClose({own_session_});
}

// False when the node is not known to have heard of it. A link that stops asks
// no more once it got no answer: the sessions end with their leases.
bool NodeLink::CloseOnNode(RemoteSession& session) {
  const absl::Status running = CheckRunning();
  if (absl::IsUnavailable(running)) return false;
  if (!running.ok() && close_unanswered_) return false;
  const absl::StatusOr<uint64_t> freed = control_.close_session(
      session.id, epoch(), session.next_number++, CallTimeout());
  close_unanswered_ = IsUnanswered(freed.status());
  return !close_unanswered_;
}

absl::Time NodeLink::NextLateClose() const {
  return unclosed_.empty() ? absl::InfiniteFuture() : next_late_close_;
}

// Without it their pages would stay for what is left of their leases and, where
// they can be mapped, for one lease more.
void NodeLink::CloseOneLate() {
  const std::shared_ptr<RemoteSession> session = std::move(unclosed_.back());
  unclosed_.pop_back();
  const int64_t now = absl::ToUnixNanos(clock_.Now());
  if (session->fence_ns.load(std::memory_order_acquire) <= now) return;
  if (CloseOnNode(*session)) return;
  unclosed_.insert(unclosed_.begin(), session);  // the others come first
  next_late_close_ = clock_.Now() + options_.repeat_pause;
}

}  // namespace farkv

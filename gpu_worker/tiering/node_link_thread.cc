// The thread of a NodeLink: its commands in order, its timers, its end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {

void NodeLink::Main() {
  for (;;) {
    RunTimers();
    const absl::Time next =
        healthy() ? std::min({next_renewal_, NextRepeat(), NextLateClose()})
                  : next_connect_;
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
    if (IsUnanswered(grant.status())) {
      // The node may have opened it all the same.
      SetFence(*session, clock_.Now(), granted_lease_);
      CloseLater(session);
    }
  } else {
    // What an open without an answer may have left is this session now.
    std::erase_if(unclosed_, [&](const std::shared_ptr<RemoteSession>& left) {
      return left->id == command.session;
    });
    sessions_.push_back({command.sequence, session});
  }
  options_.inbox->Push(std::move(ready));
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
    // Each may take a call timeout, and a command another.
    const auto renew_if_due = [this] {
      if (CheckRunning().ok() && clock_.Now() >= next_renewal_) RenewLeases();
    };
    if (now >= NextRepeat()) {
      RepeatOne();
      renew_if_due();
    }
    if (now >= NextLateClose()) {
      CloseOneLate();
      renew_if_due();
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

}  // namespace farkv

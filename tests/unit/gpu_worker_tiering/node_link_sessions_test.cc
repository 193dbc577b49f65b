// What becomes of the sessions of a link: their leases, and who closes them.
#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node_link_fixture.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// No renewal is sent to a node that is lost, so its leases end.
TEST_F(NodeLinkTest, SessionsOfALostNodeAreLostWhenItsLeasesAreOverForCertain) {
  clock_ = &time_;
  tiering_.lease = absl::Hours(1);
  tiering_.heartbeat = absl::Minutes(30);
  ASSERT_TRUE(Connect([](ControlCalls& control) {
                control.renew_leases =
                    [](Epoch, std::span<const SessionId>, absl::Duration,
                       absl::Duration) -> absl::StatusOr<RenewResult> {
                  return WithReason(absl::FailedPreconditionError("epoch 2"),
                                    ErrorReason::kStaleEpoch);
                };
                control.open_session = [open = control.open_session,
                                        own = SessionId()](
                                           const OpenSessionCall& call,
                                           absl::Duration timeout) mutable
                    -> absl::StatusOr<SessionGrant> {
                  if (own == SessionId()) {
                    own = call.session;
                  } else if (own == call.session) {
                    return absl::UnavailableError("still away");
                  }
                  return open(call, timeout);
                };
              }).ok());
  const auto session = OpenSession();
  // Timers run after each command: those before the last have.
  const auto run_timers_after = [&](absl::Duration by) {
    time_.Advance(by);
    for (int i = 0; i < 2; ++i) {
      link_->OpenSession(SequenceId{9}, SessionId::Random());
      Next<SessionReady>();
    }
  };

  run_timers_after(absl::Minutes(21));  // the renewal finds it lost
  EXPECT_FALSE(link_->healthy());
  run_timers_after(absl::Minutes(80));
  EXPECT_FALSE(session->Usable(time_.Now()));
  EXPECT_FALSE(session->lost);
  time_.Advance(absl::Minutes(11));
  link_->OpenSession(SequenceId{9}, SessionId::Random());

  EXPECT_EQ(Next<SessionLost>().sequence, SequenceId{1});
  EXPECT_TRUE(session->lost);
}

// Heartbeats go over the data plane and say nothing of the control plane.
TEST_F(NodeLinkTest, ANodeThatHasRenewedNothingForALeaseIsLost) {
  clock_ = &time_;
  tiering_.lease = absl::Hours(1);
  tiering_.heartbeat = absl::Minutes(30);
  ASSERT_TRUE(Connect([](ControlCalls& control) {
                control.renew_leases =
                    [](Epoch, std::span<const SessionId>, absl::Duration,
                       absl::Duration) -> absl::StatusOr<RenewResult> {
                  return absl::DeadlineExceededError("no answer");
                };
                control.open_session = [open = control.open_session,
                                        opened = 0](
                                           const OpenSessionCall& call,
                                           absl::Duration timeout) mutable
                    -> absl::StatusOr<SessionGrant> {
                  if (opened++ == 0) return open(call, timeout);
                  return absl::DeadlineExceededError("no answer");
                };
              }).ok());
  // Timers run after each command: those before the last have.
  const auto run_timers_after = [&](absl::Duration by) {
    time_.Advance(by);
    for (uint64_t sequence = 1; sequence < 3; ++sequence) {
      link_->OpenSession(SequenceId{sequence}, SessionId::Random());
      Next<SessionReady>();
    }
  };

  run_timers_after(absl::Minutes(21));
  run_timers_after(absl::Minutes(38));
  EXPECT_TRUE(link_->healthy());
  run_timers_after(absl::Minutes(7));
  EXPECT_FALSE(link_->healthy());
}

TEST_F(NodeLinkTest, StopRunsNoOpenThatWaitsAndClosesEverySession) {
  absl::Notification entered, go_on;
  std::vector<SessionId> closed;
  std::vector<SessionId> opened;  // the first is the link's own
  ASSERT_TRUE(Connect([&](ControlCalls& control) {
                control.open_session = [&, open = control.open_session](
                                           const OpenSessionCall& call,
                                           absl::Duration timeout) {
                  opened.push_back(call.session);
                  if (opened.size() == 2) {
                    entered.Notify();
                    go_on.WaitForNotification();
                  }
                  return open(call, timeout);
                };
                control.close_session = [&, close = control.close_session](
                                            SessionId session, Epoch epoch,
                                            uint64_t number,
                                            absl::Duration timeout) {
                  closed.push_back(session);
                  return close(session, epoch, number, timeout);
                };
              }).ok());
  const SessionId running = SessionId::Random();
  link_->OpenSession(SequenceId{1}, running);
  entered.WaitForNotification();
  link_->OpenSession(SequenceId{2}, SessionId::Random());
  link_->Reserve(SequenceId{3}, std::make_shared<RemoteSession>(), {{0, 0}});
  link_->BeginStop();
  go_on.Notify();
  link_->Stop();

  EXPECT_TRUE(Next<SessionReady>().session.ok());
  const SessionReady waited = Next<SessionReady>();
  EXPECT_EQ(waited.sequence, SequenceId{2});
  EXPECT_EQ(waited.session.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Next<PagesReserved>().placements.status().code(),
            absl::StatusCode::kCancelled);
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[1], running);
  EXPECT_THAT(closed, ElementsAre(running, opened[0]));
}

TEST_F(NodeLinkTest, AStopWaitsForOneUnansweredCloseOnly) {
  std::vector<SessionId> asked;
  ASSERT_TRUE(Connect([&](ControlCalls& control) {
                control.close_session =
                    [&](SessionId session, Epoch, uint64_t,
                        absl::Duration) -> absl::StatusOr<uint64_t> {
                  asked.push_back(session);
                  return absl::DeadlineExceededError("no answer");
                };
              }).ok());
  for (uint64_t i = 1; i <= 4; ++i) OpenSession(i);

  link_->Stop();

  EXPECT_THAT(asked, SizeIs(1));
}

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + kLong;
  while (!condition() && absl::Now() < end) std::this_thread::yield();
  return condition();
}

TEST_F(NodeLinkTest, WhatEndsWhileItsNodeIsAwayIsClosedWhenItIsBack) {
  tiering_.heartbeat = absl::Milliseconds(100);
  ASSERT_TRUE(Connect([](ControlCalls&) {}).ok());
  const auto ended = OpenSession(1);
  const auto stays = OpenSession(2);
  network_.SetFrozen(node_.port(), true);
  ASSERT_TRUE(Eventually([this] { return !link_->healthy(); }));
  link_->CloseSession(ended);
  Next<CommandDone>();
  EXPECT_EQ(node_.sessions(), 2);
  network_.SetFrozen(node_.port(), false);

  EXPECT_TRUE(Eventually([this] { return node_.sessions() == 1; }));
  EXPECT_FALSE(stays->lost);
}

// Opens sessions whose answers are lost while `lose` is set.
void LoseOpens(ControlCalls& control, std::atomic<bool>& lose) {
  control.open_session =
      [&lose, open = control.open_session](
          const OpenSessionCall& call,
          absl::Duration timeout) -> absl::StatusOr<SessionGrant> {
    auto grant = open(call, timeout);
    if (lose) return absl::DeadlineExceededError("no answer");
    return grant;
  };
}

TEST_F(NodeLinkTest, AnOpenWithoutAnAnswerLeavesNoSessionBehind) {
  repeat_pause_ = absl::Milliseconds(1);
  std::atomic<bool> lose = false;
  ASSERT_TRUE(
      Connect([&](ControlCalls& control) { LoseOpens(control, lose); }).ok());
  lose = true;

  link_->OpenSession(SequenceId{1}, SessionId::Random());

  EXPECT_FALSE(Next<SessionReady>().session.ok());
  EXPECT_TRUE(Eventually([this] { return node_.sessions() == 0; }));
  link_->Stop();
}

TEST_F(NodeLinkTest, AnOpenThatIsRepeatedIsNotClosedForTheFirstOne) {
  clock_ = &time_;
  std::atomic<bool> lose = false;
  absl::Mutex mutex;
  std::vector<SessionId> closed;
  ASSERT_TRUE(Connect([&](ControlCalls& control) {
                LoseOpens(control, lose);
                control.close_session = [&, close = control.close_session](
                                            SessionId session, Epoch epoch,
                                            uint64_t number,
                                            absl::Duration timeout) {
                  absl::MutexLock lock(&mutex);
                  closed.push_back(session);
                  return close(session, epoch, number, timeout);
                };
              }).ok());
  const SessionId repeated = SessionId::Random(), lost = SessionId::Random();
  lose = true;
  link_->OpenSession(SequenceId{1}, repeated);
  EXPECT_FALSE(Next<SessionReady>().session.ok());
  lose = false;
  link_->OpenSession(SequenceId{1}, repeated);
  EXPECT_TRUE(Next<SessionReady>().session.ok());

  // Closed later than the first would have been.
  lose = true;
  link_->OpenSession(SequenceId{2}, lost);
  EXPECT_FALSE(Next<SessionReady>().session.ok());
  time_.Advance(repeat_pause_);
  const auto is_closed = [&](SessionId session) {
    absl::MutexLock lock(&mutex);
    return std::count(closed.begin(), closed.end(), session) > 0;
  };
  EXPECT_TRUE(Eventually([&] { return is_closed(lost); }));
  EXPECT_FALSE(is_closed(repeated));
  link_->Stop();
}

TEST_F(NodeLinkTest, ACloseThatWasNotAnsweredKeepsNoLaterStopFromClosing) {
  repeat_pause_ = absl::Hours(1);
  std::atomic<bool> answers = true;
  ASSERT_TRUE(Connect([&](ControlCalls& control) {
                control.close_session =
                    [&, close = control.close_session](
                        SessionId session, Epoch epoch, uint64_t number,
                        absl::Duration timeout) -> absl::StatusOr<uint64_t> {
                  if (!answers.exchange(true)) {
                    return absl::DeadlineExceededError("no answer");
                  }
                  return close(session, epoch, number, timeout);
                };
              }).ok());
  const auto ended = OpenSession(1);
  answers = false;
  link_->CloseSession(ended);
  // The next CommandDone may be that of the opening.
  ASSERT_TRUE(Eventually([&] { return answers.load(); }));

  const Epoch before = link_->epoch();
  node_.Restart();
  const absl::Time end = absl::Now() + kLong;
  while ((link_->epoch() == before || !link_->healthy()) && absl::Now() < end) {
    std::this_thread::yield();
  }
  OpenSession(2);
  link_->Stop();

  EXPECT_FALSE(node_.has_sessions())
      << node_.sessions() << " beside the link's own";
}

}  // namespace
}  // namespace farkv

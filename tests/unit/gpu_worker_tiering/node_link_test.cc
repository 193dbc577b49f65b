// What a link to a node does when the node's answers are lost or wrong, and
// when it stops.
#include "gpu_worker/tiering/node_link.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"
#include "common/async/thread_executor.h"
#include "common/mapping/map_socket.h"
#include "common/mapping/memfd_slab.h"
#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node_link_fixture.h"
#include "tests/unit/mapping/temp_dir.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(NodeLinkTest, ADamagedAnswerToTheHelloIsCountedAndAskedForAgain) {
  damaged_hellos_ = 1;

  ASSERT_TRUE(Connect([](ControlCalls&) {}).ok());

  EXPECT_EQ(link_->Stats().damaged_answers, 1u);
}

TEST_F(NodeLinkTest, ANodeWhoseAnswersToTheHelloAreDamagedIsNotConnected) {
  damaged_hellos_ = 2;

  const absl::Status status = Connect([](ControlCalls&) {});

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory node 0"));
}

// A link whose first plan takes effect without an answer.
class LostAnswerTest : public NodeLinkTest {
 protected:
  void ConnectLosingAnAnswer() {
    ASSERT_TRUE(
        Connect([this](ControlCalls& control) {
          auto apply = control.apply_tier_plan;
          control.apply_tier_plan =
              [this, apply](
                  const TierPlanCall& call,
                  absl::Duration timeout) -> absl::StatusOr<TierPlanResult> {
            calls_.push_back(call);
            absl::StatusOr<TierPlanResult> result = apply(call, timeout);
            if (calls_.size() == 1) {
              return absl::DeadlineExceededError("the answer is lost");
            }
            return result;
          };
        }).ok());
  }
  ~LostAnswerTest() override {
    if (link_ != nullptr) link_->Stop();
  }

  const std::vector<PageName> first_ = {{0, 0}, {1, 0}, {2, 0}};
  const std::vector<PageName> second_ = {{0, 1}, {1, 1}, {2, 1}};
  std::vector<TierPlanCall> calls_;  // the link's thread, read after Stop()
};

// Under a number the node keeps one plan: another one would get its answer.
// All commands wait in line, so that the link hardly ever repeats the plan by
// itself; it makes no difference to what is expected if it does.
TEST_F(LostAnswerTest, APlanWithoutAnAnswerIsRepeatedAsItWas) {
  ConnectLosingAnAnswer();
  const auto session = OpenSession();

  link_->Reserve(SequenceId{1}, session, first_);
  link_->Reserve(SequenceId{1}, session, second_);
  link_->Reserve(SequenceId{1}, session, second_);

  EXPECT_EQ(Next<PagesReserved>().placements.status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const PagesReserved repeated = Next<PagesReserved>();
  EXPECT_EQ(repeated.asked, first_);
  EXPECT_TRUE(repeated.placements.ok());
  const PagesReserved other = Next<PagesReserved>();
  EXPECT_EQ(other.asked, second_);
  EXPECT_TRUE(other.placements.ok());
  link_->Stop();
  ASSERT_GE(calls_.size(), 3u);
  EXPECT_EQ(calls_[1].sequence_number, calls_[0].sequence_number);
  EXPECT_EQ(calls_[1].reserve, first_);
  EXPECT_EQ(calls_[2].sequence_number, calls_[0].sequence_number + 1);
}

TEST_F(LostAnswerTest, APlanWithoutAnAnswerIsRepeatedWhenNothingElseIsToDo) {
  ConnectLosingAnAnswer();

  link_->Reserve(SequenceId{1}, OpenSession(), first_);

  EXPECT_EQ(Next<PagesReserved>().placements.status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const PagesReserved repeated = Next<PagesReserved>();
  EXPECT_EQ(repeated.asked, first_);
  EXPECT_TRUE(repeated.placements.ok());
  link_->Stop();
  ASSERT_THAT(calls_, SizeIs(2));
  EXPECT_EQ(calls_[1].sequence_number, calls_[0].sequence_number);
}

TEST_F(NodeLinkTest, ASilentNodeIsLostUntilItAnswersAgain) {
  tiering_.heartbeat = absl::Milliseconds(100);
  ASSERT_TRUE(Connect([](ControlCalls&) {}).ok());
  const auto becomes = [this](bool healthy) {
    const absl::Time end = absl::Now() + kLong;
    while (absl::Now() < end) {
      if (link_->healthy() == healthy) return true;
    }
    return false;
  };

  network_.SetFrozen(node_.port(), true);
  EXPECT_TRUE(becomes(false));
  network_.SetFrozen(node_.port(), false);
  EXPECT_TRUE(becomes(true));
}

// The node freezes between its grant and the hello.
TEST_F(NodeLinkTest, AHelloToAFrozenNodeEndsByItsDeadlineAndNamesTheNode) {
  transport_clock_ = &time_;
  std::atomic<bool> frozen{false}, over{false};
  std::thread passing([&] {
    while (!frozen) std::this_thread::yield();
    while (!over) {
      time_.Advance(absl::Seconds(11));
      network_.HoldSends(false);  // looks at its deadlines again
    }
  });

  const absl::Status status = Connect([&](ControlCalls& control) {
    control.open_session = [&, open = control.open_session](
                               const OpenSessionCall& call,
                               absl::Duration timeout) {
      absl::StatusOr<SessionGrant> grant = open(call, timeout);
      network_.SetFrozen(node_.port(), true);
      frozen = true;
      return grant;
    };
  });
  over = true;
  passing.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("memory node 0 (node)"),
                    HasSubstr(absl::StrCat("localhost:", node_.port()))));
  EXPECT_FALSE(node_.has_sessions());
  network_.SetFrozen(node_.port(), false);
}

// The hello of a reconnection meets a frozen node; the one after it does not.
TEST_F(NodeLinkTest, ALinkComesBackAfterAHelloToAFrozenNode) {
  tiering_.heartbeat = absl::Milliseconds(100);
  tiering_.rpc_timeout = absl::Milliseconds(200);
  std::atomic<int> opened{0};
  ASSERT_TRUE(Connect([&](ControlCalls& control) {
                control.open_session = [&, open = control.open_session](
                                           const OpenSessionCall& call,
                                           absl::Duration timeout) {
                  absl::StatusOr<SessionGrant> grant = open(call, timeout);
                  if (grant.ok()) {
                    network_.SetFrozen(node_.port(), ++opened == 2);
                  }
                  return grant;
                };
              }).ok());

  node_.SetDown(true);  // its connections end
  node_.SetDown(false);

  const absl::Time end = absl::Now() + kLong;
  while (!(opened >= 3 && link_->healthy()) && absl::Now() < end) {
    std::this_thread::yield();
  }
  EXPECT_GE(opened, 3);
  EXPECT_TRUE(link_->healthy());
}

TEST_F(NodeLinkTest, AnErrorBeforeTheHelloNamesTheNodeToo) {
  max_peers_ = 0;

  const absl::Status status = Connect([](ControlCalls&) {});

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("memory node 0 (node)"),
                    HasSubstr(absl::StrCat("localhost:", node_.port()))));
}

// A link whose time is the calls that hang; heartbeats are too rare to matter.
class HangingPlansTest : public NodeLinkTest {
 protected:
  HangingPlansTest() {
    clock_ = &time_;
    repeat_pause_ = absl::ZeroDuration();
    tiering_.lease = absl::Hours(1);
    tiering_.rpc_timeout = absl::Hours(1);
    tiering_.heartbeat = absl::Minutes(30);
  }
  ~HangingPlansTest() override {
    if (link_ != nullptr) link_->Stop();
  }

  // Plans hang for their whole timeout and `after` is called with the number of
  // those that have; once it returns false plans are answered.
  absl::Status ConnectHanging(std::function<bool(int)> after) {
    return Connect([this, after](ControlCalls& control) {
      control.apply_tier_plan =
          [this, after, apply = control.apply_tier_plan](
              const TierPlanCall& call,
              absl::Duration timeout) -> absl::StatusOr<TierPlanResult> {
        all_asked_.WaitForNotification();
        if (!hang_) return apply(call, timeout);
        time_.Advance(timeout);
        hang_ = after(++hung_);
        return absl::DeadlineExceededError("no answer");
      };
    });
  }

  // Sessions of the sequences 1 to `count`, one plan for each.
  void Ask(int count) {
    for (int i = 1; i <= count; ++i) {
      sessions_.push_back(OpenSession(static_cast<uint64_t>(i)));
    }
    for (const auto& session : sessions_) {
      const uint64_t sequence = static_cast<uint64_t>(&session - &sessions_[0]);
      link_->Reserve(SequenceId{sequence + 1}, session, {{0, 0}});
    }
    all_asked_.Notify();
  }

  std::vector<std::shared_ptr<RemoteSession>> sessions_;
  absl::Notification all_asked_;
  // The link's thread, after all_asked_.
  bool hang_ = true;
  int hung_ = 0;
};

TEST_F(HangingPlansTest, NoLeaseEndsAndEachPlanIsAnsweredInTheEnd) {
  bool over = false;  // the link's thread, read after the answers
  ASSERT_TRUE(ConnectHanging([&](int hung) {
                for (const auto& session : sessions_) {
                  over = over || !session->Usable(time_.Now());
                }
                return hung < 40;
              }).ok());

  Ask(4);

  std::set<uint64_t> answered;
  while (answered.size() < 4 && !HasFailure()) {
    const PagesReserved reserved = Next<PagesReserved>();
    if (reserved.placements.ok()) answered.insert(reserved.sequence.value);
  }
  EXPECT_FALSE(over);
  EXPECT_EQ(hung_, 40);
}

TEST_F(HangingPlansTest, AStopWaitsForOneOfThemOnly) {
  absl::Notification stopping;
  ASSERT_TRUE(ConnectHanging([&](int hung) {
                if (hung == 4) {
                  link_->BeginStop();
                  stopping.Notify();
                }
                return true;
              }).ok());

  Ask(4);
  ASSERT_TRUE(stopping.WaitForNotificationWithTimeout(kLong));
  link_->Stop();

  EXPECT_EQ(hung_, 4);
}

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

TEST_F(NodeLinkTest, AMoveWithoutAnAnswerIsToldApartFromARefusedOne) {
  repeat_pause_ = absl::InfiniteDuration();  // by later commands alone
  std::vector<absl::Status> answers = {
      absl::DeadlineExceededError("the answer is lost"),
      absl::UnavailableError("and again"),
      WithReason(absl::UnavailableError("no room"), ErrorReason::kPoolFull)};
  ASSERT_TRUE(Connect([&answers](ControlCalls& control) {
                control.apply_tier_plan =
                    [&answers](
                        const TierPlanCall&,
                        absl::Duration) -> absl::StatusOr<TierPlanResult> {
                  const absl::Status answer = answers.front();
                  answers.erase(answers.begin());
                  return answer;
                };
              }).ok());
  const auto session = OpenSession();
  std::vector<TierChange> first(1), second(1);
  second[0].page = {0, 1};

  link_->ChangeTiers(SequenceId{1}, session, first);
  EXPECT_TRUE(Next<PagesMoved>().unanswered);
  link_->ChangeTiers(SequenceId{1}, session, second);
  const PagesMoved repeated = Next<PagesMoved>();
  const PagesMoved passed_over = Next<PagesMoved>();
  link_->ChangeTiers(SequenceId{1}, session, second);
  const PagesMoved refused = Next<PagesMoved>();

  EXPECT_TRUE(repeated.unanswered);
  EXPECT_EQ(repeated.asked[0].page, first[0].page);
  EXPECT_FALSE(passed_over.unanswered);
  EXPECT_EQ(passed_over.asked[0].page, second[0].page);
  EXPECT_FALSE(refused.unanswered);
  EXPECT_EQ(refused.asked[0].page, first[0].page);
  link_->Stop();  // before `answers` goes
}

TEST_F(NodeLinkTest, PlacesOfOtherPagesThanAskedAreRefused) {
  ASSERT_TRUE(Connect([](ControlCalls& control) {
                auto apply = control.apply_tier_plan;
                control.apply_tier_plan = [apply](const TierPlanCall& call,
                                                  absl::Duration timeout) {
                  auto result = apply(call, timeout);
                  result->reserved[1].page = {2, 9};
                  return result;
                };
              }).ok());

  link_->Reserve(SequenceId{1}, OpenSession(), {{0, 0}, {1, 0}, {2, 0}});

  const absl::Status status = Next<PagesReserved>().placements.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a place of layer 2, page 9, asked was layer 1, "
                        "page 0"));
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
  repeat_pause_ = absl::Milliseconds(50);
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
  Next<CommandDone>();

  const Epoch before = link_->epoch();
  node_.Restart();
  const absl::Time end = absl::Now() + kLong;
  while ((link_->epoch() == before || !link_->healthy()) && absl::Now() < end) {
    std::this_thread::yield();
  }
  OpenSession(2);
  link_->Stop();

  EXPECT_FALSE(node_.has_sessions());
}

TEST_F(NodeLinkTest, LeasesTooShortForTheHeartbeatAreRefusedWithBoth) {
  tiering_.lease = absl::Hours(1);
  tiering_.heartbeat = absl::Minutes(20);

  const absl::Status status = Connect([](ControlCalls& control) {
    control.open_session = [open = control.open_session](
                               const OpenSessionCall& call,
                               absl::Duration timeout) {
      auto grant = open(call, timeout);
      grant->lease = absl::Seconds(30);
      return grant;
    };
  });

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("30s"), HasSubstr("20m")));
  EXPECT_FALSE(node_.has_sessions());  // the own one is not left behind
}

TEST_F(NodeLinkTest, ANodeOfAnotherProtocolFormatOrTargetIsRefusedWithBoth) {
  using Edit = void (*)(SessionGrant&);
  const std::pair<const char*, Edit> edits[] = {
      {"protocol version is 77",
       [](SessionGrant& grant) { grant.handshake.protocol_version = 77; }},
      {"page format version is 78",
       [](SessionGrant& grant) { grant.handshake.page_format_version = 78; }},
      {"page stride is 4096",
       [](SessionGrant& grant) { grant.page_stride = 4096; }},
      {"(--exactness=bitwise) is Z80",
       [](SessionGrant& grant) { grant.handshake.kernel_target = "Z80"; }}};
  for (const auto& [message, edit] : edits) {
    const absl::Status status = Connect([edit = edit](ControlCalls& control) {
      control.open_session = [open = control.open_session, edit](
                                 const OpenSessionCall& call,
                                 absl::Duration timeout) {
        auto grant = open(call, timeout);
        edit(*grant);
        return grant;
      };
    });

    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_FALSE(node_.has_sessions());
  }
}

TEST_F(NodeLinkTest, AMapSocketThatIsNoPlainNameIsRefused) {
  tiering_.map_dir = "/nowhere";
  tiering_.cold = ColdMode::kAuto;
  for (const char* name : {"../other/node.sock", "/tmp/node.sock", "..", "."}) {
    const absl::Status status = Connect([name](ControlCalls& control) {
      auto open = control.open_session;
      control.open_session = [open, name](const OpenSessionCall& call,
                                          absl::Duration timeout) {
        auto grant = open(call, timeout);
        grant->map_socket = name;
        return grant;
      };
    });

    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_FALSE(node_.has_sessions());
  }
}

// A link to a node whose map socket is a server of the test.
class MappingLinkTest : public NodeLinkTest {
 protected:
  ~MappingLinkTest() override {
    if (link_ != nullptr) link_->Stop();
  }

  void StartMap(MapHandler handler) {
    MapServerOptions options;
    options.map_dir = dir_.path();
    options.node_id = "map";
    map_ = MapServer::Start(options, std::move(handler)).value();
    tiering_.map_dir = dir_.path();
    tiering_.cold = ColdMode::kAuto;
    tiering_.heartbeat = absl::Seconds(10);
  }

  // Every second page lies in a slab of its own. `on_ticket` runs when the
  // link asks for something to map a slab with.
  absl::Status ConnectMapped(std::function<void()> on_ticket = [] {}) {
    return Connect([this, on_ticket](ControlCalls& control) {
      control.open_session = [this, on_ticket, open = control.open_session](
                                 const OpenSessionCall& call,
                                 absl::Duration timeout) {
        if (own_ == SessionId()) own_ = call.session;
        if (call.session == own_ && tickets_++ > 0) on_ticket();
        auto grant = open(call, timeout);
        grant->map_socket = "map.sock";
        return grant;
      };
      control.apply_tier_plan = [apply = control.apply_tier_plan](
                                    const TierPlanCall& call,
                                    absl::Duration timeout) {
        auto result = apply(call, timeout);
        for (size_t i = 0; i < result->reserved.size(); ++i) {
          result->reserved[i].slab_id = static_cast<uint32_t>(i / 2);
        }
        return result;
      };
    });
  }

  PagesReserved Reserve(const std::shared_ptr<RemoteSession>& session,
                        int page_index) {
    std::vector<PageName> pages;
    for (int i = 0; i < 64; ++i) pages.push_back({i % 3, page_index + i / 3});
    link_->Reserve(SequenceId{1}, session, std::move(pages));
    return Next<PagesReserved>();
  }

  static int NumMapped(const PagesReserved& reserved) {
    return static_cast<int>(
        std::count_if(reserved.maps.begin(), reserved.maps.end(),
                      [](const MappedPage& p) { return p.data != nullptr; }));
  }

  int tickets() const { return tickets_ - 1; }  // the first one connected

  testing::TempDir dir_;
  std::unique_ptr<MapServer> map_;
  // The link's thread, read when it has answered.
  SessionId own_;
  int tickets_ = 0;
};

TEST_F(MappingLinkTest, AMapSocketThatDoesNotAnswerIsTriedOnceForAPlan) {
  absl::Notification answer;
  // The server's thread must be out of `answer` before that goes.
  const absl::Cleanup unblock = [this, &answer] {
    answer.Notify();
    map_ = nullptr;
  };
  StartMap([&](const MapRequest&,
               const PeerCredentials&) -> absl::StatusOr<MapGrant> {
    answer.WaitForNotification();
    return absl::UnavailableError("too late");
  });
  tiering_.rpc_timeout = absl::Seconds(1);
  ASSERT_TRUE(ConnectMapped().ok());
  const auto session = OpenSession();

  for (const int first_page : {0, 100}) {
    const PagesReserved reserved = Reserve(session, first_page);
    ASSERT_TRUE(reserved.placements.ok()) << reserved.placements.status();
    EXPECT_THAT(*reserved.placements, SizeIs(64));
    EXPECT_EQ(NumMapped(reserved), 0);
    // Soon after a failure the second plan does not try at all.
    EXPECT_EQ(tickets(), 1);
  }
}

TEST_F(MappingLinkTest, ALinkThatStopsMapsNoFurtherSlab) {
  MemfdSlabOptions options;
  options.size_bytes = size_t{4} << 20;
  options.huge_pages = false;
  const MemfdSlab slab = MemfdSlab::Create(options).value();
  StartMap([&slab](const MapRequest&,
                   const PeerCredentials&) -> absl::StatusOr<MapGrant> {
    return MapGrant{slab.DuplicateFd().value(), slab.size_bytes()};
  });
  // A slab has a sixth of a lease to be mapped.
  tiering_.lease = absl::Minutes(6);
  tiering_.rpc_timeout = absl::Minutes(2);
  ASSERT_TRUE(ConnectMapped([this] {
                if (tickets() == 3) link_->BeginStop();
              }).ok());

  const PagesReserved reserved = Reserve(OpenSession(), 0);

  ASSERT_TRUE(reserved.placements.ok());
  EXPECT_THAT(reserved.maps, SizeIs(64));
  EXPECT_EQ(tickets(), 3);
  EXPECT_EQ(NumMapped(reserved), 2 * 2 + 1);
}

}  // namespace
}  // namespace farkv

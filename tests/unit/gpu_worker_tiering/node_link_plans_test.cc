// Plans of a link whose answers are lost, late or wrong.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node_link_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace farkv

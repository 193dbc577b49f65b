#include "memory_node/service/plan_admission.h"

#include <string>

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr PlanLimits kLimits{.plans = 6, .compressing = 3, .per_session = 2};
constexpr bool kCompresses = true;

// How many plans of different sessions are taken.
int Fill(PlanAdmission& admission, bool compresses) {
  int count = 0;
  while (admission.TryEnter(std::to_string(count), compresses).ok()) ++count;
  return count;
}

TEST(PlanAdmissionTest, PlansThatCompressDoNotRefuseOthers) {
  PlanAdmission admission(kLimits);
  EXPECT_EQ(Fill(admission, kCompresses), 3);

  EXPECT_EQ(Fill(admission, !kCompresses), 6);
}

TEST(PlanAdmissionTest, OneSessionsPlansDoNotRefuseOtherSessions) {
  for (const bool compresses : {false, true}) {
    PlanAdmission admission(kLimits);
    int taken = 0;
    while (admission.TryEnter("greedy", compresses).ok()) ++taken;
    EXPECT_EQ(taken, 2);
    EXPECT_FALSE(admission.TryEnter("greedy", !compresses).ok());

    EXPECT_TRUE(admission.TryEnter("another", compresses).ok());
  }
}

TEST(PlanAdmissionTest, ARefusalNamesItsBoundAndWhenToCallAgain) {
  PlanAdmission admission({.plans = 1, .compressing = 0, .per_session = 1});
  ASSERT_TRUE(admission.TryEnter("a", !kCompresses).ok());

  const absl::Status of_session = admission.TryEnter("a", !kCompresses);
  const absl::Status of_node = admission.TryEnter("b", !kCompresses);
  const absl::Status of_kind = admission.TryEnter("b", kCompresses);

  EXPECT_THAT(of_session.ToString(), HasSubstr("1 plans of this session"));
  EXPECT_THAT(of_node.ToString(), HasSubstr("1 plans are"));
  EXPECT_THAT(of_kind.ToString(), HasSubstr("0 plans that compress"));
  for (const absl::Status& refused : {of_session, of_node, of_kind}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(refused), ErrorReason::kQueueFull);
    EXPECT_TRUE(RetryAfterOf(refused).has_value());
  }
}

TEST(PlanAdmissionTest, APlanThatEndedMakesRoom) {
  PlanAdmission admission({.plans = 1, .compressing = 1, .per_session = 1});
  for (int i = 0; i < 3; ++i) {
    for (const bool compresses : {false, true}) {
      ASSERT_TRUE(admission.TryEnter("a", compresses).ok());
      admission.Leave("a", compresses);
    }
  }
}

}  // namespace
}  // namespace farkv

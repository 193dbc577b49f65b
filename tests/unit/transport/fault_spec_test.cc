#include "common/transport/faults/fault_spec.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

TEST(FaultSpecTest, EveryItemIsRead) {
  const auto spec = ParseFaultSpec(
      "seed=7,drop=0.01,flip=0.005,delay=0.02:5ms,fail-nth=100,stall=0.001:2s,"
      "reorder=0.5,duplicate=1,truncate=0");

  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->seed, 7u);
  EXPECT_EQ(spec->drop, 0.01);
  EXPECT_EQ(spec->flip, 0.005);
  EXPECT_EQ(spec->delay, 0.02);
  EXPECT_EQ(spec->delay_for, absl::Milliseconds(5));
  EXPECT_EQ(spec->fail_nth, 100u);
  EXPECT_EQ(spec->stall, 0.001);
  EXPECT_EQ(spec->stall_for, absl::Seconds(2));
  EXPECT_EQ(spec->reorder, 0.5);
  EXPECT_EQ(spec->duplicate, 1.0);
  EXPECT_EQ(spec->truncate, 0.0);
}

TEST(FaultSpecTest, EmptyTextInjectsNothing) {
  const auto spec = ParseFaultSpec("");

  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->drop, 0.0);
  EXPECT_EQ(spec->fail_nth, 0u);
}

class FaultSpecRejectTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FaultSpecRejectTest, GarbageIsNamed) {
  const absl::Status status =
      ParseFaultSpec(absl::StrCat("seed=1,", GetParam())).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("\"", GetParam(), "\"")));
}

INSTANTIATE_TEST_SUITE_P(Items, FaultSpecRejectTest,
                         ::testing::Values("drop", "drop=", "drop=1.5",
                                           "drop=-0.1", "drop=nan", "drop=x",
                                           "delay=0.1", "delay=0.1:5",
                                           "delay=0.1:-5ms", "stall=2:1s",
                                           "fail-nth=0", "fail-nth=x", "seed=2",
                                           "lose=0.1", "=0.1"));

TEST(FaultSpecTest, ATrailingCommaIsRefused) {
  EXPECT_FALSE(ParseFaultSpec("drop=0.1,").ok());
}

}  // namespace
}  // namespace farkv

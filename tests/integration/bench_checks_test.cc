// farkv-bench must not call something shown that its runs did not show: it
// ends with a failure that says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ProgramResult Bench(std::vector<std::string> words) {
  words.insert(words.begin(), BinDir() + "/farkv-bench");
  words.push_back("--model=" + ReasonerDir());
  return RunProgram(words, absl::Seconds(120));
}

// Every row is recent, so nothing leaves T0. The logits are the same ones, of
// course.
TEST(ExactnessBenchTest, ACaseThatReadsNoColdRowFails) {
  const ProgramResult result =
      Bench({"exactness", "--sampled", "--case=hbm10-map", "--tokens=100",
             "--batch=2", "--pace-us=0", "--recent=4096"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("read 0 cold rows"),
                    HasSubstr("1 cases prove nothing, the first is hbm10-map"),
                    Not(HasSubstr("not exact"))));
}

// All positions lie in the first stripe, which is on one node of the two.
TEST(ExactnessBenchTest, ACaseInWhichANodeServedNoRowFails) {
  const ProgramResult result =
      Bench({"exactness", "--sampled", "--case=hbm10-prefetch", "--tokens=96",
             "--batch=2"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("every node served: no"),
                                   HasSubstr("1 cases prove nothing"),
                                   Not(HasSubstr("read 0 cold")),
                                   Not(HasSubstr("not exact"))));
}

TEST(ExactnessBenchTest, ACaseThatIsNoneIsRefused) {
  const ProgramResult result = Bench({"exactness", "--case=hbm11"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("hbm11"));
}

// The continuation is the model's own.
TEST(ExactnessBenchTest, AGeneratedContinuationIsExactToo) {
  const ProgramResult result =
      Bench({"exactness", "--sampled", "--case=hbm10-prefetch", "--generate",
             "--tokens=256", "--batch=2"});

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("\"continuation\":\"generated\""),
                                   HasSubstr("hbm10-prefetch")));
}

// Shorter than the window that stays in T0.
TEST(DecodeBenchTest, AContextWithoutColdRowsIsNoMeasurement) {
  const ProgramResult result = Bench({"decode", "--smoke", "--context=96"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("map: 0 cold rows were read"),
                                   HasSubstr("measures nothing")));
}

}  // namespace
}  // namespace farkv::testing

#include "admin_cli/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace farkv {
namespace {

using ::testing::ElementsAre;

// Runs a command that prints its round and answers it as exit code.
class WatchTest : public ::testing::Test {
 protected:
  int Run(bool is_terminal) {
    return RunWatched(
        options_, is_terminal, out_,
        [this] {
          out_ << "round " << ++rounds_ << "\n";
          return rounds_;
        },
        [this](absl::Duration time) { waits_.push_back(time); });
  }

  WatchOptions options_;
  std::stringstream out_;
  int rounds_ = 0;
  std::vector<absl::Duration> waits_;
};

TEST_F(WatchTest, WithoutWatchACommandRunsOnce) {
  options_.count = 5;

  EXPECT_EQ(Run(true), 1);

  EXPECT_EQ(out_.str(), "round 1\n");
  EXPECT_THAT(waits_, ElementsAre());
}

TEST_F(WatchTest, RoundsAreSeparatedAndTheLastOneDecides) {
  options_.enabled = true;
  options_.count = 3;
  options_.interval = absl::Seconds(7);

  EXPECT_EQ(Run(false), 3);

  EXPECT_EQ(out_.str(), "round 1\n---\nround 2\n---\nround 3\n");
  EXPECT_THAT(waits_, ElementsAre(absl::Seconds(7), absl::Seconds(7)));
}

TEST_F(WatchTest, ATerminalIsClearedBeforeEachRound) {
  options_.enabled = true;
  options_.count = 2;

  Run(true);

  EXPECT_EQ(out_.str(), "\x1b[H\x1b[Jround 1\n\x1b[H\x1b[Jround 2\n");
}

}  // namespace
}  // namespace farkv

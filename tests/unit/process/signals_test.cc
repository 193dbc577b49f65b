#include "common/process/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace farkv {
namespace {

using ::testing::ExitedWithCode;

// Each runs in a process of its own, as the signals belong to a process.
class SignalsDeathTest : public ::testing::Test {
 protected:
  SignalsDeathTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

[[noreturn]] void SleepForEver() {
  for (;;) pause();
}

TEST_F(SignalsDeathTest, ASignalBeforeTheStartIsOverEndsTheProcessAtOnce) {
  const auto program = [] {
    ShutdownSignals signals;
    kill(getpid(), SIGTERM);
    SleepForEver();
  };
  EXPECT_EXIT(program(), ExitedWithCode(128 + SIGTERM), "before the start");
}

TEST_F(SignalsDeathTest, TheFirstSignalAfterTheStartIsToldToMain) {
  const auto program = [] {
    ShutdownSignals signals;
    signals.DrainFromNow();
    kill(getpid(), SIGINT);
    exit(signals.Wait() == SIGINT ? 0 : 1);
  };
  EXPECT_EXIT(program(), ExitedWithCode(0), "");
}

TEST_F(SignalsDeathTest, TheSecondSignalEndsTheProcessAtOnce) {
  const auto program = [] {
    ShutdownSignals signals;
    signals.DrainFromNow();
    kill(getpid(), SIGTERM);
    signals.Wait();
    kill(getpid(), SIGINT);
    SleepForEver();
  };
  EXPECT_EXIT(program(), ExitedWithCode(128 + SIGINT), "behind another");
}

TEST_F(SignalsDeathTest, AnInterruptIsNoSignal) {
  const auto program = [] {
    ShutdownSignals signals;
    signals.DrainFromNow();
    signals.Interrupt();
    if (signals.Wait() != 0) exit(1);
    kill(getpid(), SIGTERM);
    exit(signals.Wait() == SIGTERM ? 0 : 2);
  };
  EXPECT_EXIT(program(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace farkv

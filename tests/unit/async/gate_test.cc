#include "common/async/gate.h"

#include <thread>
#include <utility>

#include "gtest/gtest.h"

namespace farkv {
namespace {

TEST(GateTest, NobodyEntersAClosedGate) {
  Gate gate;
  EXPECT_TRUE(gate.TryEnter());

  gate.Close();

  EXPECT_FALSE(gate.TryEnter());
  EXPECT_TRUE(gate.WaitUntilEmpty(absl::ZeroDuration()));
}

TEST(GateTest, TheCloserWaitsForAHolderUpToItsDeadline) {
  Gate gate;
  Gate::Pass pass = gate.TryEnter();
  gate.Close();
  EXPECT_FALSE(gate.WaitUntilEmpty(absl::Milliseconds(1)));

  std::thread holder([moved = std::move(pass)]() mutable {
    const Gate::Pass leaving = std::move(moved);
  });

  EXPECT_TRUE(gate.WaitUntilEmpty(absl::InfiniteDuration()));
  holder.join();
}

}  // namespace
}  // namespace farkv

#include "gpu_worker/tiering/t0_lines.h"

#include <set>
#include <vector>

#include "common/base/random.h"
#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "harness.h"

namespace farkv {
namespace {

class T0LinesTest : public ::testing::Test {
 protected:
  T0Lines Make(int granularity, uint64_t sets) {
    const uint64_t bytes =
        sets * 3 * TestGeometry().BlockBytes(static_cast<size_t>(granularity));
    return T0Lines::Create(*device_, TestGeometry(), granularity, bytes)
        .value();
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
};

TEST_F(T0LinesTest, MemoryThatHoldsNoLineSetIsRefusedByName) {
  const auto lines = T0Lines::Create(*device_, TestGeometry(), 64, 100);

  EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(lines.status().message().find("--t0-bytes"), std::string::npos);
}

TEST_F(T0LinesTest, RandomOwnersNeverShareALine) {
  T0Lines lines = Make(16, 37);
  std::set<LineSetId> owned;
  std::set<const std::byte*> addresses;

  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t draw = CounterDraw(1, {i});
    if (draw % 2 == 0) {
      const LineSetId set = lines.Allocate();
      ASSERT_EQ(set == kNoLineSet, owned.size() == 37);
      if (set == kNoLineSet) continue;
      ASSERT_TRUE(owned.insert(set).second);
      for (int layer = 0; layer < 3; ++layer) {
        ASSERT_TRUE(addresses.insert(lines.Line(layer, set)).second);
      }
    } else if (!owned.empty()) {
      auto it = owned.begin();
      std::advance(it, static_cast<int>(draw / 2 % owned.size()));
      for (int layer = 0; layer < 3; ++layer) {
        addresses.erase(lines.Line(layer, *it));
      }
      lines.Free(*it);
      owned.erase(it);
    }
    ASSERT_EQ(lines.used_sets(), static_cast<int64_t>(owned.size()));
  }
}

TEST_F(T0LinesTest, ASetFreedTwiceIsHandedOutOnce) {
  T0Lines lines = Make(64, 2);
  const LineSetId set = lines.Allocate();

  lines.Free(set);
  lines.Free(set);

  EXPECT_EQ(lines.free_sets(), 2);
}

TEST_F(T0LinesTest, LinesAreAlignedAndLieInsideTheMemory) {
  T0Lines lines = Make(1, 5);

  const auto base = reinterpret_cast<uintptr_t>(lines.Line(0, 0));
  for (int layer = 0; layer < 3; ++layer) {
    for (LineSetId set = 0; set < 5; ++set) {
      const auto line = reinterpret_cast<uintptr_t>(lines.Line(layer, set));
      EXPECT_EQ(line % 64, 0u);
      EXPECT_LE(line + lines.line_bytes(), base + 5 * lines.set_bytes());
    }
  }
}

TEST_F(T0LinesTest, PromisesEndAtTheCapacity) {
  T0Lines lines = Make(64, 10);

  EXPECT_TRUE(lines.TryReserve(7));
  EXPECT_FALSE(lines.TryReserve(4));
  lines.Release(7);
  EXPECT_TRUE(lines.TryReserve(10));
}

}  // namespace
}  // namespace farkv

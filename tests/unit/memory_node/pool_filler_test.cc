#include "memory_node/pool/pool_filler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr size_t kFilledStride = 16 << 10;
constexpr size_t kFilledPagesPerSlab = 4;
constexpr size_t kSlabBytes = kFilledPagesPerSlab * kFilledStride;

class PoolFillerTest : public ::testing::Test {
 protected:
  static PagePoolOptions Options(size_t slabs) {
    PagePoolOptions options;
    options.slab_bytes = kSlabBytes;
    options.capacity_bytes = slabs * kSlabBytes;
    options.high_watermark = 10000;
    return options;
  }
  static PoolFillerOptions TwoThreads() {
    PoolFillerOptions options;
    options.threads = 2;
    return options;
  }
  // Counts the slabs. The one that comes as `held_`, or the next that a filler
  // makes once hold_ahead_ is set, says that it is being made and waits. Those
  // from `refused_from_` on, and a filler's while refuse_ahead_ is set, fail.
  // Who of two threads makes which number is open; who is a filler is not.
  SlabSource Source() {
    return [this](size_t bytes) -> absl::StatusOr<SlabMemory> {
      const int number = ++made_;
      const bool ahead = std::this_thread::get_id() != test_thread_;
      if (number == held_ || (ahead && hold_ahead_.exchange(false))) {
        entered_.Notify();
        go_.WaitForNotification();
      }
      if (number >= refused_from_ || (ahead && refuse_ahead_)) {
        return absl::ResourceExhaustedError("no memory for a slab");
      }
      return AllocateHeapSlab(bytes);
    };
  }
  static std::vector<PageHandle> Take(PagePool& pool, const char* tenant,
                                      size_t count) {
    auto pages = pool.Allocate(tenant, kFilledStride, count);
    EXPECT_TRUE(pages.ok()) << pages.status();
    return pages.value_or(std::vector<PageHandle>());
  }

  ManualClock clock_;
  std::atomic<int> made_{0};
  int held_ = -1, refused_from_ = 1000;
  std::atomic<bool> hold_ahead_{false}, refuse_ahead_{false};
  const std::thread::id test_thread_ = std::this_thread::get_id();
  absl::Notification entered_, go_;
};

TEST_F(PoolFillerTest, AFilledPoolServesAnyTenantWithoutMakingMemory) {
  PagePool pool(Options(4), Source(), clock_);
  PoolFiller filler(pool, TwoThreads());
  ASSERT_TRUE(filler.AwaitFilled().ok());
  EXPECT_EQ(pool.stats().ready_bytes, 4 * kSlabBytes);
  EXPECT_EQ(pool.stats().slab_bytes, 4 * kSlabBytes);

  Take(pool, "a", kFilledPagesPerSlab + 1);
  Take(pool, "b", 2 * kFilledPagesPerSlab);

  EXPECT_EQ(made_, 4);
  EXPECT_EQ(pool.stats().ready_bytes, 0u);
  EXPECT_EQ(pool.stats().slabs, 4u);
}

TEST_F(PoolFillerTest, ProgressIsToldAndEndsAtTheWholePool) {
  PagePool pool(Options(3), Source(), clock_);
  std::vector<size_t> done;
  std::vector<absl::Status> filled;
  PoolFillerOptions options;
  options.on_progress = [&](size_t bytes) { done.push_back(bytes); };
  options.on_filled = [&](const absl::Status& s) { filled.push_back(s); };
  { PoolFiller(pool, options).AwaitFilled().IgnoreError(); }

  EXPECT_THAT(
      done, ::testing::ElementsAre(kSlabBytes, 2 * kSlabBytes, 3 * kSlabBytes));
  EXPECT_THAT(filled, ::testing::ElementsAre(absl::OkStatus()));
}

TEST_F(PoolFillerTest, ARefusalOfTheMachineEndsTheFillingAndIsTold) {
  refused_from_ = 3;
  PagePool pool(Options(8), Source(), clock_);
  PoolFiller filler(pool, TwoThreads());

  EXPECT_EQ(filler.AwaitFilled().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(made_, 4);
}

TEST_F(PoolFillerTest, AStopEndsTheFillingWithTheSlabUnderWay) {
  held_ = 2;
  PagePool pool(Options(100), Source(), clock_);
  absl::Status filled;
  PoolFillerOptions options;
  options.on_filled = [&](const absl::Status& status) { filled = status; };
  std::optional<PoolFiller> filler;
  filler.emplace(pool, options);
  entered_.WaitForNotification();

  std::thread stopper([&] { filler.reset(); });
  while (pool.WaitUntilWanted()) {
  }
  go_.Notify();
  stopper.join();

  EXPECT_EQ(made_, 2);
  EXPECT_EQ(filled.code(), absl::StatusCode::kCancelled);
}

TEST_F(PoolFillerTest, AnAllocationWaitsForTheSlabThatIsBeingMadeAhead) {
  held_ = 1;
  PagePool pool(Options(1), Source(), clock_);
  PoolFiller filler(pool, {});
  entered_.WaitForNotification();

  std::thread tenant([&] { Take(pool, "a", 1); });
  go_.Notify();
  tenant.join();

  EXPECT_EQ(made_, 1);
  EXPECT_EQ(pool.stats().used_pages, 1u);
}

TEST_F(PoolFillerTest, ASlabClosedForATenantEarnsItOneMoreMadeAhead) {
  PagePool pool(Options(4), Source(), clock_);
  PoolFiller filler(pool, {});
  ASSERT_TRUE(filler.AwaitFilled().ok());
  for (const PageHandle& page : Take(pool, "a", 4 * kFilledPagesPerSlab)) {
    ASSERT_TRUE(pool.Release(page).ok());
  }
  hold_ahead_ = true;

  Take(pool, "b", 1);  // closes one of a's and makes another
  entered_.WaitForNotification();
  go_.Notify();
  Take(pool, "b",
       kFilledPagesPerSlab);  // finds the one made ahead, or waits for it

  EXPECT_EQ(made_, 6);
  EXPECT_EQ(pool.stats().slabs, 4u);
}

TEST_F(PoolFillerTest, AFailureLaterIsToldOnceAndTheNextNeedTriesAgain) {
  PagePool pool(Options(2), Source(), clock_);
  absl::Notification told;
  PoolFillerOptions options;
  options.on_refill_error = [&](const absl::Status&) { told.Notify(); };
  PoolFiller filler(pool, options);
  ASSERT_TRUE(filler.AwaitFilled().ok());
  for (const PageHandle& page : Take(pool, "a", 2 * kFilledPagesPerSlab)) {
    ASSERT_TRUE(pool.Release(page).ok());
  }
  refuse_ahead_ = true;

  Take(pool, "b", 1);
  told.WaitForNotification();
  Take(pool, "b", kFilledPagesPerSlab);

  EXPECT_EQ(made_, 5);
  EXPECT_EQ(pool.stats().slabs, 2u);
}

}  // namespace
}  // namespace farkv

#include "memory_node/pool/page_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "common/page/page_format.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr size_t kStride = 16 << 10;
constexpr size_t kPagesPerSlab = 4;

class PagePoolTest : public ::testing::Test {
 protected:
  static PagePoolOptions Options(size_t slabs) {
    PagePoolOptions options;
    options.slab_bytes = kPagesPerSlab * kStride;
    options.capacity_bytes = slabs * options.slab_bytes;
    options.high_watermark = 10000;
    return options;
  }
  // Counts slabs that are alive.
  SlabSource Source() {
    return [this](size_t bytes) -> absl::StatusOr<SlabMemory> {
      if (!refusal_.ok()) return refusal_;
      ++alive_;
      auto memory =
          std::make_shared<SlabMemory>(AllocateHeapSlab(bytes).value());
      return SlabMemory(
          {memory->data(), bytes}, false,
          []() -> absl::StatusOr<UniqueFd> { return UniqueFd(dup(0)); },
          [this, memory] { --alive_; });
    };
  }
  static PageHandle One(PagePool& pool, const std::string& tenant = "a",
                        size_t stride = kStride) {
    return pool.Allocate(tenant, stride, 1).value().front();
  }

  ManualClock clock_;
  absl::Status refusal_;
  int alive_ = 0;
};

// A tenant far below its quota may keep all slabs from another.
TEST_F(PagePoolTest, WhatPagesOfOneTenantKeepFromOthersIsShown) {
  PagePoolOptions options = Options(2);
  options.tenant_quota_bytes = 2 * kStride;
  PagePool pool(options, Source(), clock_);
  EXPECT_EQ(pool.stats().stranded_bytes, 0u);
  const PageHandle small = One(pool, "a", kStride / 2);
  const PageHandle large = One(pool, "a", kStride);
  const size_t used = kStride + kStride / 2;

  EXPECT_EQ(pool.Allocate("b", kStride, 1).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(pool.pressure());
  EXPECT_EQ(pool.stats().stranded_bytes, pool.stats().capacity_bytes - used);

  // An empty slab is anybody's; a page in quarantine holds its slab.
  ASSERT_TRUE(pool.Release(small).ok());
  EXPECT_EQ(pool.stats().stranded_bytes, (kPagesPerSlab - 1) * kStride);
  EXPECT_TRUE(pool.Allocate("b", kStride, 2).ok());
  ASSERT_TRUE(pool.Quarantine(large, clock_.Now() + absl::Seconds(1)).ok());
  const size_t of_both = 2 * kPagesPerSlab - 3;
  EXPECT_EQ(pool.stats().stranded_bytes, of_both * kStride);
  clock_.Advance(absl::Seconds(1));
  pool.Sweep();
  EXPECT_EQ(pool.stats().stranded_bytes, (kPagesPerSlab - 2) * kStride);
}

TEST_F(PagePoolTest, AFreshPageHasGenerationOneInItsHeader) {
  PagePool pool(Options(1), Source(), clock_);

  const PageHandle page = One(pool);

  EXPECT_EQ(page.generation, Generation{1});
  EXPECT_EQ(LoadPageGeneration(page.data), Generation{1});
}

TEST_F(PagePoolTest, AReusedPageIsRefusedUnderItsOldGeneration) {
  PagePool pool(Options(1), Source(), clock_);
  const PageHandle old_page = One(pool);
  ASSERT_TRUE(pool.Release(old_page).ok());

  const PageHandle new_page = One(pool);

  EXPECT_EQ(new_page.data, old_page.data);
  EXPECT_EQ(new_page.generation, Generation{2});
  EXPECT_EQ(LoadPageGeneration(new_page.data), Generation{2});
  EXPECT_EQ(pool.Pin(old_page).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(pool.Release(old_page).ToString(),
              HasSubstr("has generation 2, not 1"));
}

TEST_F(PagePoolTest, NoTwoPagesOfAPoolEverHaveTheSameGeneration) {
  PagePool pool(Options(2), Source(), clock_);
  std::set<uint64_t> generations;
  size_t given = 0;
  for (int round = 0; round < 3; ++round) {
    // Slabs change their tenant from round to round.
    const std::string tenant = round % 2 == 0 ? "a" : "b";
    const auto pages = pool.Allocate(tenant, kStride, 2 * kPagesPerSlab);
    ASSERT_TRUE(pages.ok()) << pages.status();
    for (const PageHandle& page : *pages) {
      generations.insert(page.generation.value);
      ++given;
      ASSERT_TRUE(pool.Release(page).ok());
    }
  }

  EXPECT_EQ(generations.size(), given);
  EXPECT_EQ(*generations.rbegin(), given);
}

TEST_F(PagePoolTest, PagesDoNotOverlapAndStayInsideTheirSlab) {
  PagePool pool(Options(2), Source(), clock_);

  const auto pages = pool.Allocate("a", kStride, 2 * kPagesPerSlab);

  ASSERT_TRUE(pages.ok()) << pages.status();
  std::set<std::pair<uint32_t, uint64_t>> places;
  for (const PageHandle& page : *pages) {
    EXPECT_EQ(page.offset % kStride, 0u);
    EXPECT_LT(page.offset, kPagesPerSlab * kStride);
    places.insert({page.slab_id, page.offset});
  }
  EXPECT_EQ(places.size(), 2 * kPagesPerSlab);
}

// Says when it is asked for the `n`-th time.
class CountedClock final : public Clock {
 public:
  explicit CountedClock(int n) : left_(n) {}
  absl::Time Now() const override {
    if (--left_ == 0) asked_.Notify();
    return absl::UnixEpoch();
  }
  void AwaitAsked() const { asked_.WaitForNotification(); }

 private:
  mutable std::atomic<int> left_;
  mutable absl::Notification asked_;
};

TEST_F(PagePoolTest, ASlabThatAnotherCallerMakesForTheSameTenantIsWaitedFor) {
  absl::Notification being_made, go;
  std::atomic<bool> hold{false};
  const SlabSource source = [&](size_t bytes) -> absl::StatusOr<SlabMemory> {
    if (hold) {
      being_made.Notify();
      go.WaitForNotification();
    }
    return AllocateHeapSlab(bytes);
  };
  // Allocations ask it once in each turn: a's two, the first of b's one.
  const CountedClock clock(4);
  PagePool pool(Options(1), source, clock);
  ASSERT_TRUE(pool.Release(One(pool)).ok());
  hold = true;

  std::thread first([&] { EXPECT_TRUE(pool.Allocate("b", kStride, 1).ok()); });
  being_made.WaitForNotification();
  std::thread second([&] { EXPECT_TRUE(pool.Allocate("b", kStride, 1).ok()); });
  // The second has the lock, in which it is refused or not, when it asks.
  clock.AwaitAsked();
  go.Notify();
  first.join();
  second.join();
  EXPECT_EQ(pool.stats().used_pages, 2u);
}

TEST_F(PagePoolTest, AllocationIsAllOrNone) {
  PagePool pool(Options(1), Source(), clock_);
  One(pool);

  const auto pages = pool.Allocate("a", kStride, kPagesPerSlab);

  EXPECT_EQ(pages.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool.stats().used_pages, 1u);
  EXPECT_TRUE(pool.Allocate("a", kStride, kPagesPerSlab - 1).ok());
}

TEST_F(PagePoolTest, ADoubleReleaseIsRefused) {
  PagePool pool(Options(1), Source(), clock_);
  const PageHandle page = One(pool);
  ASSERT_TRUE(pool.Release(page).ok());

  EXPECT_THAT(pool.Release(page).ToString(), HasSubstr("is free"));
  EXPECT_EQ(pool.stats().free_pages, kPagesPerSlab);
}

TEST_F(PagePoolTest, AQuarantinedPageIsReusedOnlyWhenItsTimeIsOver) {
  PagePool pool(Options(1), Source(), clock_);
  const auto pages = pool.Allocate("a", kStride, kPagesPerSlab).value();
  for (const PageHandle& page : pages) {
    ASSERT_TRUE(pool.Quarantine(page, clock_.Now() + absl::Seconds(10)).ok());
  }

  EXPECT_EQ(pool.Sweep(), clock_.Now() + absl::Seconds(10));
  EXPECT_EQ(pool.stats().quarantined_pages, kPagesPerSlab);
  EXPECT_FALSE(pool.Allocate("a", kStride, 1).ok());
  clock_.Advance(absl::Seconds(9));
  EXPECT_FALSE(pool.Allocate("a", kStride, 1).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(pool.Allocate("a", kStride, kPagesPerSlab).ok());
  EXPECT_EQ(pool.Sweep(), absl::InfiniteFuture());
}

TEST_F(PagePoolTest, AReleasedPageIsNotReusedUnderARunningCopy) {
  PagePool pool(Options(1), Source(), clock_);
  const auto pages = pool.Allocate("a", kStride, kPagesPerSlab).value();
  {
    const auto pin = pool.Pin(pages[0]);
    ASSERT_TRUE(pin.ok());
    ASSERT_TRUE(pool.Release(pages[0]).ok());

    EXPECT_FALSE(pool.Allocate("a", kStride, 1).ok());
    EXPECT_FALSE(pool.Pin(pages[0]).ok());
    EXPECT_EQ(LoadPageGeneration(pin->data()), Generation{1});
  }

  EXPECT_EQ(One(pool).data, pages[0].data);
  EXPECT_EQ(pool.stats().pins, 0u);
}

TEST_F(PagePoolTest, APinHoldsAPageBeyondItsQuarantine) {
  PagePool pool(Options(1), Source(), clock_);
  const auto pages = pool.Allocate("a", kStride, kPagesPerSlab).value();
  {
    const auto pin = pool.Pin(pages[0]);
    ASSERT_TRUE(
        pool.Quarantine(pages[0], clock_.Now() + absl::Seconds(1)).ok());
    clock_.Advance(absl::Seconds(2));

    EXPECT_FALSE(pool.Allocate("a", kStride, 1).ok());
  }

  EXPECT_TRUE(pool.Allocate("a", kStride, 1).ok());
}

TEST_F(PagePoolTest, APageInQuarantineIsReadableUntilThatIsOver) {
  PagePool pool(Options(1), Source(), clock_);
  const PageHandle page = One(pool);
  EXPECT_FALSE(pool.PinQuarantined(page).ok());
  const absl::Time until = clock_.Now() + absl::Seconds(5);
  ASSERT_TRUE(pool.Quarantine(page, until).ok());

  absl::StatusOr<PagePin> pin = pool.PinQuarantined(page);
  ASSERT_TRUE(pin.ok()) << pin.status();
  clock_.Advance(absl::Seconds(5));
  pool.Sweep();

  EXPECT_FALSE(pool.PinQuarantined(page).ok());
  EXPECT_EQ(pool.stats().free_pages, kPagesPerSlab - 1) << "under a copy";
  pin = absl::NotFoundError("");
  EXPECT_EQ(pool.stats().free_pages, kPagesPerSlab);
}

TEST_F(PagePoolTest, AQuarantineCanBeEndedByWhoeverBeganIt) {
  PagePool pool(Options(1), Source(), clock_);
  const PageHandle first = One(pool), second = One(pool);
  const absl::Time until = clock_.Now() + absl::Seconds(5);
  ASSERT_TRUE(pool.Quarantine(first, until).ok());
  ASSERT_TRUE(pool.Quarantine(second, until).ok());

  pool.EndQuarantine(second, until);
  pool.EndQuarantine(second, until);

  EXPECT_EQ(pool.stats().quarantined_pages, 1u);
  EXPECT_TRUE(pool.PinQuarantined(first).ok());
  EXPECT_EQ(pool.Sweep(), until);
}

TEST_F(PagePoolTest, PoolsThatAreNumberedTogetherShareNoSlabAndNoGeneration) {
  PagePool pool(Options(2), Source(), clock_);
  PagePool other(Options(2), Source(), clock_, &pool);

  const PageHandle a = One(pool), b = One(other), c = One(pool);

  EXPECT_NE(a.slab_id, b.slab_id);
  EXPECT_LT(a.generation, b.generation);
  EXPECT_LT(b.generation, c.generation);
}

TEST_F(PagePoolTest, AnEmptySlabIsClosedForAnotherTenantAndNeverHandedOver) {
  PagePool pool(Options(1), Source(), clock_);
  const PageHandle first = One(pool, "a");
  EXPECT_FALSE(pool.Allocate("b", kStride, 1).ok());
  ASSERT_TRUE(pool.Release(first).ok());

  const PageHandle second = One(pool, "b");

  EXPECT_NE(second.slab_id, first.slab_id);
  EXPECT_EQ(second.generation, Generation{2});
  EXPECT_EQ(alive_, 1);
  EXPECT_THAT(pool.Release(first).ToString(), HasSubstr("has been closed"));
}

TEST_F(PagePoolTest, ASlabInQuarantineIsNotClosedForAnotherStride) {
  PagePool pool(Options(1), Source(), clock_);
  ASSERT_TRUE(pool.Quarantine(One(pool), clock_.Now() + absl::Seconds(5)).ok());

  EXPECT_FALSE(pool.Allocate("a", 2 * kStride, 1).ok());
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(pool.Allocate("a", 2 * kStride, 1).ok());
}

TEST_F(PagePoolTest, AllocatorsThatCloseEachOthersEmptySlabsComeToAnEnd) {
  PagePool* pool = nullptr;
  int made = 0;
  bool inside = false;
  // Another tenant takes and gives back a page whenever a slab is made.
  const auto steal = [&](size_t bytes) -> absl::StatusOr<SlabMemory> {
    if (++made > 200) return absl::InternalError("no end of slabs");
    if (!std::exchange(inside, true)) {
      const auto page = pool->Allocate("b", kStride, 1);
      if (page.ok()) pool->Release(page->front()).IgnoreError();
      inside = false;
    }
    return AllocateHeapSlab(bytes);
  };
  PagePool stolen(Options(2), steal, clock_);
  pool = &stolen;

  const auto pages = stolen.Allocate("a", kStride, 2 * kPagesPerSlab);

  EXPECT_EQ(pages.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(pages.status().ToString(), HasSubstr("went to other callers"));
  EXPECT_LT(made, 50);
  EXPECT_EQ(stolen.stats().used_pages, 0u);
}

TEST_F(PagePoolTest, ReservationsStopAtTheHighWatermark) {
  PagePoolOptions options = Options(2);
  options.high_watermark = 5000;
  PagePool pool(options, Source(), clock_);

  EXPECT_TRUE(pool.Allocate("a", kStride, kPagesPerSlab - 1).ok());
  EXPECT_FALSE(pool.stats().pressure);
  const auto refused = pool.Allocate("a", kStride, 2);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("high watermark"));
  EXPECT_TRUE(pool.Allocate("a", kStride, 1).ok());
  EXPECT_TRUE(pool.stats().pressure);
}

TEST_F(PagePoolTest, ATenantStopsAtItsQuotaAndOthersGoOn) {
  PagePoolOptions options = Options(2);
  options.tenant_quota_bytes = 2 * kStride;
  PagePool pool(options, Source(), clock_);
  const PageHandle page = One(pool, "a");
  One(pool, "a");

  const auto refused = pool.Allocate("a", kStride, 1);

  EXPECT_THAT(refused.status().ToString(), HasSubstr("quota of tenant 'a'"));
  EXPECT_TRUE(pool.Allocate("b", kStride, 1).ok());
  ASSERT_TRUE(pool.Release(page).ok());
  EXPECT_TRUE(pool.Allocate("a", kStride, 1).ok());
}

TEST_F(PagePoolTest, ARefusalOfTheMachineIsReportedAndLeavesNothingBooked) {
  PagePool pool(Options(1), Source(), clock_);
  refusal_ = absl::ResourceExhaustedError("no memory for a slab");

  EXPECT_EQ(pool.Allocate("a", kStride, 1).status(), refusal_);
  refusal_ = absl::OkStatus();
  EXPECT_TRUE(pool.Allocate("a", kStride, kPagesPerSlab).ok());
}

TEST_F(PagePoolTest, OnlyItsTenantGetsTheDescriptorOfASlab) {
  PagePool pool(Options(1), Source(), clock_);
  const PageHandle page = One(pool, "a");

  EXPECT_EQ(pool.Share("b", page.slab_id).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(pool.Share("a", page.slab_id + 1).status().code(),
            absl::StatusCode::kNotFound);
  const auto shared = pool.Share("a", page.slab_id);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_TRUE(shared->descriptor.valid());
  EXPECT_EQ(shared->bytes, kPagesPerSlab * kStride);
}

TEST_F(PagePoolTest, SlabsAreGivenBackWithThePool) {
  {
    PagePool pool(Options(2), Source(), clock_);
    ASSERT_TRUE(pool.Allocate("a", kStride, kPagesPerSlab + 1).ok());
    EXPECT_EQ(alive_, 2);
  }
  EXPECT_EQ(alive_, 0);
}

TEST(PagePoolOptionsTest, APoolSmallerThanOneSlabIsRefusedNamingBoth) {
  PagePoolOptions options;
  options.capacity_bytes = options.slab_bytes - 1;

  EXPECT_THAT(options.Validate().ToString(), HasSubstr("67108864"));
}

}  // namespace
}  // namespace farkv

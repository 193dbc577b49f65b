// Tier changes: a stored T1 page becomes a T2 page, once.
#include <atomic>
#include <thread>

#include "common/page/t2_codec.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const size_t kT2Stride = PageLayout::T2(kSmallGeometry, 8).stride;

class DirectoryCompressTest : public DirectoryFixture {
 protected:
  DirectoryCompressTest() { Open(); }

  absl::StatusOr<PagePin> Fetch(PageName page, Generation generation,
                                const std::vector<uint64_t>& rows,
                                Tier tier = Tier::kT1, int bits = 0) {
    const PageWanted wanted{page.page_index, generation, rows, tier, bits};
    return std::move(
        directory_.BeginFetch(Caller(), page.layer, {&wanted, 1})[0]);
  }
  void ExpectEverythingBack() const {
    for (const PagePool* pool : {&pool_, &t2_pool_}) {
      const PagePoolStats stats = pool->stats();
      EXPECT_EQ(stats.used_pages + stats.quarantined_pages + stats.pins, 0u);
    }
  }
};

TEST_F(DirectoryCompressTest, AStoredPageMovesAndItsNewPlaceIsAnswered) {
  const PagePlacement old = ReserveAndStore(1, {1, 0});

  const PagePlacement moved = Compress(2, ToT2({1, 0}));

  ASSERT_TRUE(moved.status.ok()) << moved.status;
  EXPECT_EQ(moved.page, (PageName{1, 0}));
  EXPECT_EQ(moved.tier, Tier::kT2);
  EXPECT_GT(moved.generation, old.generation);
  EXPECT_NE(moved.slab_id, old.slab_id);
  const StoredPage page = directory_.PinStored(TestSession(1), {1, 0}).value();
  EXPECT_EQ(page.pin.handle().offset, moved.slab_offset);
  EXPECT_TRUE(
      CheckPageHeader(page.pin.data(), kSmallGeometry, page.identity).ok());
  EXPECT_EQ(page.identity.tier, Tier::kT2);
  EXPECT_EQ(page.identity.t2_bits, 8);
  EXPECT_TRUE(CheckT2Heads(page.pin.data(), kSmallGeometry, 8).ok());
}

TEST_F(DirectoryCompressTest, PoolsAndReportsCountBothTiers) {
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {1, 0});

  Compress(3, ToT2({0, 0}));

  EXPECT_EQ(pool_.stats().used_pages, 1u);
  EXPECT_EQ(pool_.stats().quarantined_pages, 1u);
  EXPECT_EQ(t2_pool_.stats().used_pages, 1u);
  const DirectoryStats stats = directory_.stats();
  EXPECT_EQ(stats.stored_pages, 2u);
  EXPECT_EQ(stats.t2_pages, 1u);
  EXPECT_EQ(stats.live_rows, 4u * kPageTokens);
  EXPECT_EQ(stats.t2_live_rows, 2u * kPageTokens);
  EXPECT_EQ(directory_.Describe(TestSession(1)).value().bytes,
            PageLayout::T1(kSmallGeometry).stride + kT2Stride);
  const auto pages = directory_.DescribePages(TestSession(1)).value();
  EXPECT_EQ(pages[0].tier, Tier::kT2);
  EXPECT_EQ(pages[0].t2_bits, 8);
  EXPECT_THAT(pages[0].live, ElementsAre(~0ull, ~0ull));
  EXPECT_EQ(pages[1].tier, Tier::kT1);
}

TEST_F(DirectoryCompressTest, APageIsQuantisedOnceHoweverOftenItIsAsked) {
  ReserveAndStore(1, {0, 0});
  const PagePlacement moved = Compress(2, ToT2({0, 0}));

  const PagePlacement repeated = Compress(2, ToT2({0, 0}));
  const PagePlacement again = Compress(3, ToT2({0, 0}));
  const PagePlacement other = Compress(4, ToT2({0, 0}, 4));

  EXPECT_EQ(repeated.generation, moved.generation);
  EXPECT_EQ(again.generation, moved.generation);
  EXPECT_EQ(again.slab_id, moved.slab_id);
  EXPECT_EQ(again.tier, Tier::kT2);
  EXPECT_EQ(other.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status.message()),
              HasSubstr("T2 of 8 bits, not 4"));
  EXPECT_EQ(t2_pool_.stats().used_pages, 1u);
}

TEST_F(DirectoryCompressTest, AReservationOfACompressedPageAnswersItsPlace) {
  ReserveAndStore(1, {0, 0});
  const PagePlacement moved = Compress(2, ToT2({0, 0}));

  const TierPlanResult result = directory_.Apply(Plan(3, {{0, 0}})).value();

  EXPECT_EQ(result.reserved[0].generation, moved.generation);
  EXPECT_EQ(result.reserved[0].tier, Tier::kT2);
}

TEST_F(DirectoryCompressTest, TheOldGenerationIsReadableForOneLease) {
  const Generation old = ReserveAndStore(1, {0, 0}).generation;
  Compress(2, ToT2({0, 0}));
  directory_.Renew(Epoch{77}, std::vector{TestSession(1)}, absl::Seconds(10))
      .value();

  clock_.Advance(absl::Seconds(4));
  {
    const absl::StatusOr<PagePin> pin = Fetch({0, 0}, old, AllRows());
    ASSERT_TRUE(pin.ok()) << pin.status();
    EXPECT_EQ(LoadPageGeneration(pin->data()), old);
    EXPECT_TRUE(CheckPageRows(pin->data(), kSmallGeometry, AllRows()).ok());
  }
  clock_.Advance(absl::Seconds(1));

  EXPECT_EQ(ReasonOf(Fetch({0, 0}, old, AllRows()).status()),
            ErrorReason::kStaleGeneration);
  directory_.Sweep();
  EXPECT_EQ(pool_.stats().quarantined_pages, 0u);
}

TEST_F(DirectoryCompressTest, AFetchUnderWayKeepsItsBytesBeyondThatLease) {
  const Generation old = ReserveAndStore(1, {0, 0}).generation;
  directory_.Renew(Epoch{77}, std::vector{TestSession(1)}, absl::Seconds(10))
      .value();
  absl::StatusOr<PagePin> pin = Fetch({0, 0}, old, AllRows());
  ASSERT_TRUE(pin.ok());

  Compress(2, ToT2({0, 0}));
  clock_.Advance(absl::Seconds(9));
  directory_.Renew(Epoch{77}, std::vector{TestSession(1)}, absl::Seconds(10))
      .value();
  clock_.Advance(absl::Seconds(9));
  directory_.Sweep();
  for (uint64_t i = 0; i < kPages - 1; ++i) {
    ReserveAndStore(3 + i, {1, static_cast<int32_t>(i)});
  }

  EXPECT_EQ(LoadPageGeneration(pin->data()), old);
  EXPECT_TRUE(CheckPageRows(pin->data(), kSmallGeometry, AllRows()).ok());
  EXPECT_FALSE(directory_.Apply(Plan(20, {{2, 9}})).ok()) << "still pinned";
  pin = absl::NotFoundError("");
  EXPECT_TRUE(directory_.Apply(Plan(20, {{2, 9}})).ok());
}

TEST_F(DirectoryCompressTest, EachGenerationIsReadInItsOwnTierAndBitsOnly) {
  const Generation old = ReserveAndStore(1, {0, 0}).generation;
  const Generation now = Compress(2, ToT2({0, 0})).generation;

  EXPECT_TRUE(Fetch({0, 0}, now, AllRows(), Tier::kT2, 8).ok());
  for (const absl::Status& refused :
       {Fetch({0, 0}, now, AllRows()).status(),
        Fetch({0, 0}, now, AllRows(), Tier::kT2, 4).status(),
        Fetch({0, 0}, old, AllRows(), Tier::kT2, 8).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("it is tier"));
  }
}

TEST_F(DirectoryCompressTest, FreeingOrClosingGivesBothPlacesBackAtOnce) {
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {0, 1});
  Compress(3, ToT2({0, 0}));
  Compress(4, ToT2({0, 1}));

  EXPECT_EQ(directory_.Apply(Plan(5, {}, {{0, 0}})).value().freed_pages, 1u);
  EXPECT_EQ(pool_.stats().quarantined_pages, 1u);
  EXPECT_EQ(directory_.stats().t2_live_rows, 2u * kPageTokens);
  EXPECT_EQ(directory_.Close(TestSession(1), Epoch{77}).value(), 1u);

  ExpectEverythingBack();
}

TEST_F(DirectoryCompressTest,
       PagesOfAnExpiredSessionGoToQuarantineInBothPools) {
  ReserveAndStore(1, {0, 0});
  clock_.Advance(absl::Seconds(4));
  Compress(2, ToT2({0, 0}));

  clock_.Advance(absl::Seconds(1));
  directory_.Sweep();
  EXPECT_EQ(pool_.stats().quarantined_pages, 1u);
  EXPECT_EQ(t2_pool_.stats().quarantined_pages, 1u);
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(directory_.Sweep().next, absl::InfiniteFuture());

  ExpectEverythingBack();
}

TEST_F(DirectoryCompressTest, WithoutRoomThePageStaysInT1) {
  PagePoolOptions small = PoolOptions();
  small.slab_bytes = small.capacity_bytes = kT2Stride;
  PagePool t2_pool(small, AllocateHeapSlab, clock_, &pool_);
  Directory directory(Options(), pool_, clock_, {&t2_pool, CompressPage});
  Directory none(Options(), pool_, clock_);
  for (Directory* d : {&directory, &none}) {
    ASSERT_TRUE(d->Open(OpenCall()).ok());
    TierPlanCall plan = Plan(1, {{0, 0}, {0, 1}});
    const auto places = d->Apply(plan).value().reserved;
    for (const PagePlacement& place : places) {
      StoreTicket ticket =
          d->BeginStore(Caller(), place.page, place.generation).value();
      FillPage(1, ticket.pin.data());
      PageHeader(ticket.pin.data(), kSmallGeometry).set_live(0, 1);
      ASSERT_TRUE(d->FinishStore(std::move(ticket), AllRows()).ok());
    }
    plan = Plan(2);
    plan.tier_changes = {ToT2({0, 0}), ToT2({0, 1})};

    const auto moved = d->Apply(plan).value().moved;

    EXPECT_EQ(moved[0].status.ok(), d == &directory);
    EXPECT_EQ(moved[1].status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(moved[1].status), ErrorReason::kPoolFull);
    EXPECT_EQ(moved[1].page, (PageName{0, 1}));
    const std::vector<uint64_t> rows = AllRows();
    const PageWanted wanted{1, places[1].generation, rows};
    EXPECT_TRUE(d->BeginFetch(Caller(), 0, {&wanted, 1})[0].ok());
    ASSERT_TRUE(d->Close(TestSession(1), Epoch{77}).ok());
  }
}

TEST_F(DirectoryCompressTest, WhatCannotBeCodedOrIsDamagedStaysInT1) {
  const Generation a = ReserveAndStore(1, {0, 0}).generation;
  ReserveAndStore(2, {0, 1});
  {
    std::byte* page =
        directory_.PinStored(TestSession(1), {0, 0}).value().pin.data();
    std::byte* rows = page + PageLayout::T1(kSmallGeometry).header_bytes;
    StoreLe(rows, FloatToBf16(1e30f));
    PageHeader header(page, kSmallGeometry);
    const size_t bytes = kSmallGeometry.VectorBytes();
    header.set_row_crc(
        0, 0,
        RowCrc({rows, bytes},
               {rows + kSmallGeometry.ValueOffset(kPageTokens, 0, 0), bytes}));
    directory_.PinStored(TestSession(1), {0, 1})
        .value()
        .pin.data()[PageLayout::T1(kSmallGeometry).header_bytes + 5] ^=
        std::byte{1};
  }
  TierPlanCall plan = Plan(3);
  plan.tier_changes = {ToT2({0, 0}), ToT2({0, 1})};

  const auto moved = directory_.Apply(plan).value().moved;

  EXPECT_EQ(moved[0].status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(moved[0].status.message()),
              HasSubstr("layer 0, page 0: head 0"));
  EXPECT_EQ(moved[1].status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(t2_pool_.stats().used_pages, 0u);
  EXPECT_EQ(pool_.stats().used_pages, 2u);
  EXPECT_TRUE(Fetch({0, 0}, a, AllRows()).ok());
  // As an exception the large value can be kept.
  TierChange change = ToT2({0, 0});
  change.exceptions = {1, 0};
  EXPECT_TRUE(Compress(4, change).status.ok());
}

TEST_F(DirectoryCompressTest, ChangesThatMakeNoSenseAreRefusedOneByOne) {
  ReserveAndStore(1, {0, 0});
  TierPlanCall plan = Plan(2, {{0, 1}});
  plan.tier_changes = {{{0, 0}, Tier::kT0, 0, {}},
                       {{0, 0}, Tier::kT2, 5, {}},
                       {{0, 0}, Tier::kT2, 8, {1}},
                       {{0, 0}, Tier::kT2, 8, {0x1ff, 0}},
                       ToT2({0, 1}),
                       ToT2({2, 7}),
                       ToT2({0, 0}),
                       ToT2({0, 0})};

  const auto moved = directory_.Apply(plan).value().moved;

  ASSERT_EQ(moved.size(), 8u);
  const char* const messages[] = {"a change to T0", "bits are 5",
                                  "1 bitmaps for 2", "9 exceptions"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ReasonOf(moved[i].status), ErrorReason::kInvalidField);
    EXPECT_THAT(std::string(moved[i].status.message()), HasSubstr(messages[i]));
  }
  EXPECT_EQ(ReasonOf(moved[4].status), ErrorReason::kNotFound);
  EXPECT_EQ(ReasonOf(moved[5].status), ErrorReason::kNotFound);
  EXPECT_TRUE(moved[6].status.ok());
  EXPECT_EQ(ReasonOf(moved[7].status), ErrorReason::kDuplicate);
}

TEST_F(DirectoryCompressTest, EvictedRowsAreReadableUnderTheOldGenerationOnly) {
  const Generation old = ReserveAndStore(1, {0, 0}).generation;
  TierPlanCall plan = Plan(2);
  plan.evictions = {{{0, 0}, {~1ull, ~1ull}}};
  directory_.Apply(plan).value();

  const Generation now = Compress(3, ToT2({0, 0})).generation;

  EXPECT_TRUE(Fetch({0, 0}, old, {1, 1}).ok());
  EXPECT_EQ(ReasonOf(Fetch({0, 0}, now, {1, 1}, Tier::kT2, 8).status()),
            ErrorReason::kNotFound);
  EXPECT_EQ(directory_.stats().t2_live_rows, 126u);
  plan = Plan(4);
  plan.evictions = {{{0, 0}, {2, 0}}};
  directory_.Apply(plan).value();
  EXPECT_EQ(directory_.stats().t2_live_rows, 1u);
  EXPECT_EQ(directory_.stats().live_rows, 1u);
  // A late fetch of a T2 row that was evicted meanwhile still works.
  EXPECT_TRUE(Fetch({0, 0}, now, {4, 4}, Tier::kT2, 8).ok());
  plan = Plan(5);
  plan.evictions = {{{0, 0}, {0, 0}}};
  EXPECT_EQ(directory_.Apply(plan).value().freed_pages, 1u);
  EXPECT_EQ(directory_.stats().t2_pages, 0u);
  ExpectEverythingBack();
}

TEST_F(DirectoryCompressTest, AStoreAndATierChangeOfOnePageExcludeEachOther) {
  const Generation generation = ReserveAndStore(1, {0, 0}).generation;
  StoreTicket ticket =
      directory_.BeginStore(Caller(), {0, 0}, generation).value();
  EXPECT_EQ(Compress(2, ToT2({0, 0})).status.code(),
            absl::StatusCode::kAborted);
  ASSERT_TRUE(directory_.FinishStore(std::move(ticket), {}).ok());

  // A store that comes while the page is compressed, as a late repeat may.
  absl::Status meanwhile;
  Directory* directory = nullptr;
  Directory slow(
      Options(), pool_, clock_,
      {&t2_pool_, [&](auto&&... args) {
         meanwhile =
             directory->BeginStore(Caller(2), {0, 0}, Generation{2}).status();
         return CompressPage(args...);
       }});
  directory = &slow;
  ASSERT_TRUE(slow.Open(OpenCall(2)).ok());
  const auto place = slow.Apply(Plan(1, {{0, 0}}, {}, 2)).value().reserved[0];
  ASSERT_EQ(place.generation, Generation{2});
  ticket = slow.BeginStore(Caller(2), {0, 0}, place.generation).value();
  FillPage(1, ticket.pin.data());
  ASSERT_TRUE(slow.FinishStore(std::move(ticket), AllRows()).ok());
  TierPlanCall plan = Plan(2, {}, {}, 2);
  plan.tier_changes = {ToT2({0, 0})};

  EXPECT_TRUE(slow.Apply(plan).value().moved[0].status.ok());

  EXPECT_EQ(meanwhile.code(), absl::StatusCode::kAborted);
  const Generation now =
      slow.DescribePages(TestSession(2)).value()[0].generation;
  EXPECT_EQ(slow.BeginStore(Caller(2), {0, 0}, now).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(slow.Close(TestSession(2), Epoch{77}).ok());
}

TEST_F(DirectoryCompressTest, ASessionThatClosesMeanwhileLeavesNothing) {
  Directory* directory = nullptr;
  Directory closing(
      Options(), pool_, clock_,
      {&t2_pool_, [&](auto&&... args) {
         EXPECT_EQ(directory->Close(TestSession(2), Epoch{77}).value(), 1u);
         return CompressPage(args...);
       }});
  directory = &closing;
  ASSERT_TRUE(closing.Open(OpenCall(2)).ok());
  const auto place =
      closing.Apply(Plan(1, {{0, 0}}, {}, 2)).value().reserved[0];
  StoreTicket ticket =
      closing.BeginStore(Caller(2), {0, 0}, place.generation).value();
  FillPage(1, ticket.pin.data());
  ASSERT_TRUE(closing.FinishStore(std::move(ticket), AllRows()).ok());
  TierPlanCall plan = Plan(2, {}, {}, 2);
  plan.tier_changes = {ToT2({0, 0})};

  EXPECT_TRUE(absl::IsNotFound(closing.Apply(plan).status()));

  ExpectEverythingBack();
}

// Whichever comes first, a reader gets the bytes of the generation it names.
TEST_F(DirectoryCompressTest, ReadersGoOnWhilePagesMove) {
  constexpr int32_t kMoving = 6;
  std::vector<Generation> old;
  for (int32_t i = 0; i < kMoving; ++i) {
    old.push_back(
        ReserveAndStore(1 + static_cast<uint64_t>(i), {0, i}).generation);
  }
  std::atomic<bool> moved{false};
  std::thread reader([&] {
    for (bool last = false; !last;) {
      last = moved;
      for (int32_t i = 0; i < kMoving; ++i) {
        const Generation generation = old[static_cast<size_t>(i)];
        const auto pin = Fetch({0, i}, generation, AllRows());
        ASSERT_TRUE(pin.ok()) << pin.status();
        ASSERT_EQ(LoadPageGeneration(pin->data()), generation);
        ASSERT_TRUE(CheckPageRows(pin->data(), kSmallGeometry, AllRows()).ok());
      }
    }
  });
  for (int32_t i = 0; i < kMoving; ++i) {
    EXPECT_TRUE(
        Compress(20 + static_cast<uint64_t>(i), ToT2({0, i})).status.ok());
  }
  moved = true;
  reader.join();

  EXPECT_EQ(directory_.Close(TestSession(1), Epoch{77}).value(), 6u);
  ExpectEverythingBack();
}

// Who waited would hold a thread that plans of other sessions need.
TEST_F(DirectoryCompressTest, NoPlanWaitsForAnotherOfItsSession) {
  std::vector<absl::StatusCode> codes;
  std::function<void()> during;
  Directory directory(Options(), pool_, clock_,
                      {&t2_pool_, [&](const auto&... args) {
                         if (during) during();
                         return CompressPage(args...);
                       }});
  directory.Open(OpenCall(3)).value();
  directory.Open(OpenCall(4)).value();
  const PageName page{0, 0};
  const Generation generation =
      directory.Apply(Plan(1, {page}, {}, 3)).value().reserved[0].generation;
  StoreTicket ticket =
      directory.BeginStore(Caller(3), page, generation).value();
  FillPage(1, ticket.pin.data());
  ASSERT_TRUE(directory.FinishStore(std::move(ticket), AllRows()).ok());
  TierPlanCall compress = Plan(2, {}, {}, 3);
  compress.tier_changes = {ToT2(page)};
  TierPlanCall evict = Plan(3, {}, {}, 3);
  evict.evictions = {{page, {1, 1}}};
  // On the thread of the running plan: one that waits for it waits in vain.
  during = [&] {
    const absl::Time start = absl::Now();
    for (const TierPlanCall& plan :
         {compress, evict, Plan(4, {{1, 1}}, {}, 3), Plan(5, {}, {page}, 3)}) {
      codes.push_back(directory.Apply(plan).status().code());
    }
    EXPECT_LT(absl::Now() - start, absl::Seconds(2));
    EXPECT_TRUE(directory.Apply(Plan(1, {{1, 1}}, {}, 4)).ok());
  };

  EXPECT_TRUE(directory.Apply(compress).ok());
  during = nullptr;

  EXPECT_EQ(codes, std::vector(4, absl::StatusCode::kAborted));
  for (const TierPlanCall& plan : {compress, Plan(4, {{1, 1}}, {}, 3)}) {
    EXPECT_TRUE(directory.Apply(plan).ok());
  }
}

TEST_F(DirectoryCompressTest, APlanWhoseReservationFailsCompressesNothing) {
  ReserveAndStore(1, {0, 0});
  TierPlanCall plan = Plan(2);
  for (int32_t i = 0; i < 20; ++i) plan.reserve.push_back({1, i});
  plan.tier_changes = {ToT2({0, 0})};

  EXPECT_FALSE(directory_.Apply(plan).ok());

  EXPECT_EQ(directory_.stats().t2_pages, 0u);
  plan.reserve.clear();
  EXPECT_TRUE(directory_.Apply(plan).value().moved[0].status.ok());
}

}  // namespace
}  // namespace farkv

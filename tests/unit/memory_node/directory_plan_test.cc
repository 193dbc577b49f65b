// ApplyTierPlan.
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class DirectoryPlanTest : public DirectoryFixture {};

TEST_F(DirectoryPlanTest, AReservedPageHasAHeaderThatNamesIt) {
  Open();

  const auto result = directory_.Apply(Plan(1, {{2, 5}}));

  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->reserved.size(), 1u);
  const PagePlacement& placement = result->reserved[0];
  EXPECT_EQ(placement.page, (PageName{2, 5}));
  EXPECT_EQ(placement.generation, Generation{1});
  StoreTicket ticket =
      directory_.BeginStore(Caller(), {2, 5}, Generation{1}).value();
  PageHeader(ticket.pin.data(), kSmallGeometry).Seal();
  EXPECT_TRUE(CheckPageHeader(ticket.pin.data(), kSmallGeometry,
                              {.session = TestSession(1),
                               .layer = 2,
                               .page_index = 5,
                               .generation = Generation{1}})
                  .ok());
  directory_.FinishStore(std::move(ticket), {}).IgnoreError();
}

TEST_F(DirectoryPlanTest, ReservationsAreAllOrNoneWithReasonAndHint) {
  Open();
  std::vector<PageName> pages;
  for (int32_t i = 0; i < static_cast<int32_t>(kPages) + 1; ++i) {
    pages.push_back({0, i});
  }

  const absl::Status status = directory_.Apply(Plan(1, pages)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kPoolFull);
  EXPECT_TRUE(RetryAfterOf(status).has_value());
  EXPECT_EQ(pool_.stats().used_pages, 0u);
  EXPECT_EQ(directory_.Describe(TestSession(1)).value().pages, 0u);
}

TEST_F(DirectoryPlanTest, AFailedPlanMayBeTriedAgainUnderItsNumber) {
  Open();
  std::vector<PageName> pages;
  for (int32_t i = 0; i < static_cast<int32_t>(kPages) + 1; ++i) {
    pages.push_back({0, i});
  }
  ASSERT_FALSE(directory_.Apply(Plan(1, pages)).ok());
  pages.pop_back();

  EXPECT_TRUE(directory_.Apply(Plan(1, pages)).ok());
}

TEST_F(DirectoryPlanTest, ARetryGetsTheFirstReplyAndChangesNothing) {
  Open();
  const TierPlanResult first = directory_.Apply(Plan(1, {{0, 0}})).value();
  directory_.Apply(Plan(2, {}, {{0, 0}})).value();

  const TierPlanResult again = directory_.Apply(Plan(1, {{0, 0}})).value();

  ASSERT_EQ(again.reserved.size(), 1u);
  EXPECT_EQ(again.reserved[0].generation, first.reserved[0].generation);
  EXPECT_EQ(pool_.stats().used_pages, 0u);
}

TEST_F(DirectoryPlanTest, ANumberOlderThanTheKeptRepliesIsRefused) {
  Open();
  for (uint64_t number = 1; number <= ReplyLog::kKept + 1; ++number) {
    directory_.Apply(Plan(number)).value();
  }

  EXPECT_TRUE(directory_.Apply(Plan(2)).ok());
  const absl::Status status = directory_.Apply(Plan(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kStaleSequenceNumber);
  EXPECT_EQ(ReasonOf(directory_.Apply(Plan(0)).status()),
            ErrorReason::kStaleSequenceNumber);
}

// A page's place takes 64 bytes of a reply, an error several times that.
TierPlanCall WithManyErrors(TierPlanCall call) {
  call.evictions.resize(kMaxPlanItems);  // of a page that is not stored
  for (PageEviction& eviction : call.evictions) eviction.live = {1, 1};
  return call;
}

TEST_F(DirectoryPlanTest, KeptRepliesAreBoundedInBytesButForTheLast) {
  ReplyLog log;
  TierPlanResult long_reply;
  long_reply.reserved.resize(ReplyLog::kMaxBytes / sizeof(PagePlacement) / 4);
  for (uint64_t number = 1; number <= ReplyLog::kKept; ++number) {
    log.Add(number, long_reply);
    EXPECT_LE(log.bytes(), ReplyLog::kMaxBytes);
    EXPECT_NE(log.Find(number).value(), nullptr);
  }
  EXPECT_NE(log.Find(ReplyLog::kKept - 2).value(), nullptr);

  TierPlanResult huge_reply;
  huge_reply.evictions.assign(ReplyLog::kMaxBytes / 64,
                              absl::NotFoundError("a page"));
  log.Add(ReplyLog::kKept + 1, huge_reply);

  EXPECT_EQ((*log.Find(ReplyLog::kKept + 1))->evictions.size(),
            huge_reply.evictions.size());
  EXPECT_EQ(log.Find(ReplyLog::kKept).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(DirectoryPlanTest, ARetryWhoseReplyWasDroppedForItsBytesChangesNothing) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();
  directory_.Apply(WithManyErrors(Plan(2, {}, {{0, 0}}))).value();
  ASSERT_EQ(pool_.stats().used_pages, 0u);
  ASSERT_TRUE(directory_.Apply(Plan(1, {{0, 0}})).ok());  // the kept reply
  for (uint64_t number = 3; number <= 6; ++number) {
    directory_.Apply(WithManyErrors(Plan(number))).value();
  }

  const absl::Status status = directory_.Apply(Plan(1, {{0, 0}})).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kStaleSequenceNumber);
  EXPECT_EQ(pool_.stats().used_pages, 0u);
  const auto last = directory_.Apply(WithManyErrors(Plan(6)));
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->evictions.size(), size_t{kMaxPlanItems});
  EXPECT_TRUE(directory_.Apply(Plan(7)).ok());
}

TEST_F(DirectoryPlanTest, ReservingAPageAgainKeepsItsPlace) {
  Open();
  const TierPlanResult first = directory_.Apply(Plan(1, {{0, 0}})).value();

  const TierPlanResult second =
      directory_.Apply(Plan(2, {{0, 1}, {0, 0}})).value();

  EXPECT_EQ(second.reserved[1].slab_offset, first.reserved[0].slab_offset);
  EXPECT_EQ(second.reserved[1].generation, first.reserved[0].generation);
  EXPECT_EQ(pool_.stats().used_pages, 2u);
}

TEST_F(DirectoryPlanTest, NamesOutOfRangeOrTwiceAreRefused) {
  Open();

  for (const PageName page :
       {PageName{3, 0}, PageName{-1, 0}, PageName{0, -1}, PageName{0, 65536}}) {
    EXPECT_EQ(ReasonOf(directory_.Apply(Plan(1, {page})).status()),
              ErrorReason::kInvalidField);
  }
  EXPECT_EQ(ReasonOf(directory_.Apply(Plan(1, {{0, 0}, {0, 0}})).status()),
            ErrorReason::kDuplicate);
}

TEST_F(DirectoryPlanTest, AFreedPageIsReusedUnderTheNextGeneration) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();

  const TierPlanResult freed =
      directory_.Apply(Plan(2, {}, {{0, 0}, {0, 7}})).value();
  const TierPlanResult again = directory_.Apply(Plan(3, {{0, 0}})).value();

  EXPECT_EQ(freed.freed_pages, 1u);
  EXPECT_EQ(again.reserved[0].generation, Generation{2});
  EXPECT_EQ(
      ReasonOf(directory_.BeginStore(Caller(), {0, 0}, Generation{1}).status()),
      ErrorReason::kStaleGeneration);
}

TEST_F(DirectoryPlanTest, EvictionClearsBitsAndFreesAnEmptyPage) {
  Open();
  ReserveAndStore(1, {0, 0});
  TierPlanCall plan = Plan(2);
  plan.evictions.push_back({{0, 0}, {0xf0, 0x0f}});

  const TierPlanResult result = directory_.Apply(plan).value();

  EXPECT_TRUE(result.evictions[0].ok());
  EXPECT_THAT(directory_.DescribePages(TestSession(1)).value()[0].live,
              ::testing::ElementsAre(0xf0, 0x0f));
  EXPECT_EQ(directory_.stats().live_rows, 8u);
  plan.sequence_number = 3;
  plan.evictions[0].live = {0, 0};
  EXPECT_EQ(directory_.Apply(plan).value().freed_pages, 1u);
  EXPECT_EQ(directory_.stats().live_rows, 0u);
  EXPECT_EQ(pool_.stats().used_pages, 0u);
}

TEST_F(DirectoryPlanTest, EvictionCannotBringRowsBackOrTouchUnstoredPages) {
  Open();
  ReserveAndStore(1, {0, 0});
  TierPlanCall plan = Plan(2, {{0, 1}});
  plan.evictions = {
      {{0, 0}, {1, 1}}, {{0, 0}, {2, 1}}, {{0, 1}, {1, 1}}, {{0, 0}, {1}}};

  const TierPlanResult result = directory_.Apply(plan).value();

  EXPECT_TRUE(result.evictions[0].ok());
  EXPECT_THAT(result.evictions[1].ToString(), HasSubstr("not among 0x1"));
  EXPECT_EQ(ReasonOf(result.evictions[2]), ErrorReason::kNotFound);
  EXPECT_EQ(ReasonOf(result.evictions[3]), ErrorReason::kInvalidField);
}

TEST_F(DirectoryPlanTest, AQuotaIsReportedAsOne) {
  PagePoolOptions options = PoolOptions();
  options.tenant_quota_bytes = PageLayout::T1(kSmallGeometry).stride;
  PagePool pool(options, AllocateHeapSlab, clock_);
  Directory directory(Options(), pool, clock_);
  ASSERT_TRUE(directory.Open(OpenCall()).ok());

  EXPECT_EQ(ReasonOf(directory.Apply(Plan(1, {{0, 0}, {0, 1}})).status()),
            ErrorReason::kQuotaExceeded);
}

}  // namespace
}  // namespace farkv

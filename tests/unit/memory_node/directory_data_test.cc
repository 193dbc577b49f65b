// What the directory lets the data plane do.
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

class DirectoryDataTest : public DirectoryFixture {
 protected:
  absl::Status FetchOne(PageName page, Generation generation,
                        const std::vector<uint64_t>& rows) {
    const PageWanted wanted{page.page_index, generation, rows};
    return directory_.BeginFetch(Caller(), page.layer, {&wanted, 1})[0]
        .status();
  }
};

TEST_F(DirectoryDataTest, OnlyReservedPagesCanBeStored) {
  Open();

  EXPECT_EQ(
      ReasonOf(directory_.BeginStore(Caller(), {0, 0}, Generation{1}).status()),
      ErrorReason::kNotFound);
}

TEST_F(DirectoryDataTest, AnotherTenantTouchesNothing) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();
  DataCaller caller = Caller();
  caller.tenant = "other";

  EXPECT_EQ(
      directory_.BeginStore(caller, {0, 0}, Generation{1}).status().code(),
      absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(directory_.CheckCaller(caller).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(DirectoryDataTest, TwoStoresOfAPageDoNotRunAtOnce) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();
  auto first = directory_.BeginStore(Caller(), {0, 0}, Generation{1});
  ASSERT_TRUE(first.ok());

  EXPECT_TRUE(absl::IsAborted(
      directory_.BeginStore(Caller(), {0, 0}, Generation{1}).status()));
  ASSERT_TRUE(directory_.FinishStore(*std::move(first), {}).ok());
  EXPECT_FALSE(directory_.BeginStore(Caller(), {0, 0}, Generation{1})
                   .value()
                   .was_stored);
}

TEST_F(DirectoryDataTest, AFetchNeedsStoredRowsOfTheRightGeneration) {
  Open();
  directory_.Apply(Plan(1, {{0, 1}})).value();
  const PagePlacement placement = ReserveAndStore(2, {0, 0});
  const Generation generation = placement.generation;

  EXPECT_TRUE(FetchOne({0, 0}, generation, {1, 1}).ok());
  EXPECT_EQ(ReasonOf(FetchOne({0, 1}, Generation{1}, {1, 1})),
            ErrorReason::kNotFound);
  EXPECT_EQ(ReasonOf(FetchOne({0, 0}, Generation{9}, {1, 1})),
            ErrorReason::kStaleGeneration);
  EXPECT_EQ(ReasonOf(FetchOne({1, 0}, generation, {1, 1})),
            ErrorReason::kNotFound);
  EXPECT_EQ(FetchOne({0, 0}, generation, {1}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DirectoryDataTest, RowsThatWereNeverStoredAreNotFetched) {
  Open();
  const PagePlacement placement =
      directory_.Apply(Plan(1, {{0, 0}})).value().reserved[0];
  StoreTicket ticket =
      directory_.BeginStore(Caller(), {0, 0}, placement.generation).value();
  const std::vector<uint64_t> stored = {0b0110, 0b1111};
  ASSERT_TRUE(directory_.FinishStore(std::move(ticket), stored).ok());

  EXPECT_TRUE(FetchOne({0, 0}, placement.generation, {0b0010, 0b1001}).ok());
  EXPECT_FALSE(FetchOne({0, 0}, placement.generation, {0b0001, 0}).ok());
}

TEST_F(DirectoryDataTest, AStoreThatOutlivesItsSessionChangesNothing) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();
  StoreTicket ticket =
      directory_.BeginStore(Caller(), {0, 0}, Generation{1}).value();
  ASSERT_TRUE(directory_.Close(TestSession(1), Epoch{77}).ok());
  // The pin still holds the memory.
  EXPECT_EQ(pool_.stats().used_pages, 1u);
  Open();  // the same id again, another session

  EXPECT_EQ(ReasonOf(directory_.FinishStore(std::move(ticket), AllRows())),
            ErrorReason::kNotFound);

  EXPECT_EQ(pool_.stats().used_pages, 0u);
  EXPECT_EQ(directory_.stats().stored_pages, 0u);
}

TEST_F(DirectoryDataTest, AStoreOfAPageThatWasGivenAwayChangesNothing) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();
  StoreTicket ticket =
      directory_.BeginStore(Caller(), {0, 0}, Generation{1}).value();
  directory_.Apply(Plan(2, {}, {{0, 0}})).value();
  const Generation next =
      directory_.Apply(Plan(3, {{0, 0}})).value().reserved[0].generation;

  EXPECT_EQ(ReasonOf(directory_.FinishStore(std::move(ticket), AllRows())),
            ErrorReason::kStaleGeneration);

  EXPECT_EQ(directory_.stats().stored_pages, 0u);
  EXPECT_EQ(ReasonOf(FetchOne({0, 0}, next, {1, 1})), ErrorReason::kNotFound);
}

TEST_F(DirectoryDataTest, AnEvictedRowCanStillBeFetchedByALateRequest) {
  Open();
  const PagePlacement placement = ReserveAndStore(1, {0, 0});
  TierPlanCall plan = Plan(2);
  plan.evictions.push_back({{0, 0}, {1, 1}});
  directory_.Apply(plan).value();

  EXPECT_TRUE(FetchOne({0, 0}, placement.generation, {2, 2}).ok());
}

}  // namespace
}  // namespace farkv

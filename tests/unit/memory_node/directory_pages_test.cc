// The list of pages that are not free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

class DirectoryPagesTest : public DirectoryFixture {
 protected:
  std::vector<HeldPage> List(PageQuery query = {}) {
    return directory_.ListPages(query);
  }
};

TEST_F(DirectoryPagesTest, APageSaysWhoseItIsAndWhatHoldsIt) {
  Open();
  clock_.Advance(absl::Seconds(1));
  ReserveAndStore(1, {0, 0});
  directory_.Apply(Plan(2, {{1, 0}})).value();
  clock_.Advance(absl::Seconds(2));

  const std::vector<HeldPage> pages = List();

  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].state, HeldState::kStored);
  EXPECT_EQ(pages[0].session, TestSession(1));
  EXPECT_EQ(pages[0].tenant, "tenant");
  EXPECT_EQ(pages[0].worker_id, "worker");
  EXPECT_EQ(pages[0].page, (PageName{0, 0}));
  EXPECT_EQ(pages[0].live_rows, 2u * kPageTokens);
  EXPECT_EQ(pages[0].bytes, PageLayout::T1(kSmallGeometry).stride);
  EXPECT_EQ(pages[0].age, absl::Seconds(2));
  EXPECT_EQ(pages[0].held_for, absl::Seconds(2));
  EXPECT_EQ(pages[1].state, HeldState::kReserved);
  EXPECT_EQ(pages[1].live_rows, 0u);
}

TEST_F(DirectoryPagesTest, AStoreAndAPinAreShownWhileTheyLast) {
  Open();
  const PagePlacement placement =
      directory_.Apply(Plan(1, {{0, 0}})).value().reserved[0];
  {
    StoreTicket ticket =
        directory_.BeginStore(Caller(), {0, 0}, placement.generation).value();
    EXPECT_TRUE(List().at(0).storing);
    EXPECT_EQ(List().at(0).pins, 1u);
    EXPECT_TRUE(directory_.FinishStore(std::move(ticket), AllRows()).ok());
  }
  EXPECT_FALSE(List().at(0).storing);
  EXPECT_EQ(List().at(0).pins, 0u);
}

TEST_F(DirectoryPagesTest,
       PagesOfASessionThatEndedAreInQuarantineUnderItsName) {
  Open();
  ReserveAndStore(1, {0, 0});
  clock_.Advance(absl::Seconds(7));  // the lease was of 5 s
  directory_.Sweep();

  const std::vector<HeldPage> pages = List();

  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].state, HeldState::kQuarantined);
  EXPECT_EQ(pages[0].session, TestSession(1));
  EXPECT_EQ(pages[0].tenant, "tenant");
  EXPECT_EQ(pages[0].held_for, absl::Seconds(3));
  clock_.Advance(absl::Seconds(3));
  directory_.Sweep();
  EXPECT_TRUE(List().empty());
}

TEST_F(DirectoryPagesTest, ACompressedPageAndTheOneItWasMadeFromAreBothThere) {
  Open();
  ReserveAndStore(1, {0, 0});
  Compress(2, ToT2({0, 0}));

  const std::vector<HeldPage> pages = List();

  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].tier, Tier::kT2);
  EXPECT_EQ(pages[0].t2_bits, 8);
  EXPECT_EQ(pages[0].bytes, PageLayout::T2(kSmallGeometry, 8).stride);
  EXPECT_EQ(pages[1].tier, Tier::kT1);
  EXPECT_EQ(pages[1].state, HeldState::kQuarantined);
}

TEST_F(DirectoryPagesTest, FiltersAreOfSessionTierAndState) {
  Open(1);
  Open(2);
  ReserveAndStore(1, {0, 0});
  directory_.Apply(Plan(2, {{1, 0}})).value();
  directory_.Apply(Plan(1, {{0, 0}}, {}, 2)).value();
  Compress(3, ToT2({0, 0}));

  PageQuery of_two;
  of_two.sessions = SessionPattern::FromHex("02020202").value();
  PageQuery t2;
  t2.tier = Tier::kT2;
  PageQuery reserved;
  reserved.state = HeldState::kReserved;
  PageQuery quarantined;
  quarantined.state = HeldState::kQuarantined;

  EXPECT_EQ(List().size(), 4u);
  ASSERT_EQ(List(of_two).size(), 1u);
  EXPECT_EQ(List(of_two)[0].session, TestSession(2));
  EXPECT_EQ(List(t2).size(), 1u);
  EXPECT_EQ(List(reserved).size(), 2u);
  EXPECT_EQ(List(quarantined).size(), 1u);
}

// Whatever the size of the parts, each page is there once.
TEST_F(DirectoryPagesTest, PartsOfAnySizeMakeUpTheWhole) {
  Open(3);
  Open(1);
  directory_.Apply(Plan(1, {{0, 0}, {1, 0}, {2, 0}}, {}, 3)).value();
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {1, 0});
  Compress(3, ToT2({0, 0}));
  Compress(4, ToT2({1, 0}));
  const size_t total = 3 + 2 + 2;
  for (size_t count = 1; count <= total + 1; ++count) {
    PageQuery query;
    query.count = count;
    std::set<uint64_t> generations;
    size_t listed = 0;
    for (;;) {
      const std::vector<HeldPage> pages = List(query);
      ASSERT_LE(pages.size(), count);
      for (const HeldPage& page : pages) {
        generations.insert(page.generation.value);
      }
      listed += pages.size();
      if (pages.size() < count) break;
      query.after_instance = pages.back().instance;
      query.after_generation = pages.back().generation.value;
    }
    EXPECT_EQ(listed, total) << "in parts of " << count;
    EXPECT_EQ(generations.size(), total) << "in parts of " << count;
  }
}

}  // namespace
}  // namespace farkv

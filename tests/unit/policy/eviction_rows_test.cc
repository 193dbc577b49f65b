#include "common/policy/eviction_rows.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EvictionDecision ChooseOrDie(const RankedRows& ranked, int64_t num_kept) {
  absl::StatusOr<EvictionDecision> decision = ChooseRows(ranked, num_kept);
  EXPECT_TRUE(decision.ok()) << decision.status();
  return decision.ok() ? *std::move(decision) : EvictionDecision{};
}

TEST(ChooseRowsTest, KeepsTheLargestKeysAndOfEqualOnesTheYounger) {
  const RankedRows ranked{.rows = {{.position = 3, .key = 1},
                                   {.position = 9, .key = .5},
                                   {.position = 4, .key = 1},
                                   {.position = 5, .key = 1},
                                   {.position = 7, .key = 2}}};

  EXPECT_THAT(ChooseOrDie(ranked, 3).kept, ElementsAre(4, 5, 7));
  EXPECT_THAT(ChooseOrDie(ranked, 0).kept, IsEmpty());
  EXPECT_THAT(ChooseOrDie(ranked, 9).kept, ElementsAre(3, 4, 5, 7, 9));
}

TEST(ChooseRowsTest, PinnedComeFirstThenMeasuresThenKeys) {
  const RankedRows ranked{
      .rows = {{.position = 0, .measure = 1, .key = 9},
               {.position = 1, .measure = 5, .key = 1},
               {.position = 2, .measure = 5, .key = 0},
               {.position = 3, .measure = 0, .key = 8},
               {.position = 4, .measure = 9, .key = 9, .pinned = true},
               {.position = 5, .pinned = true}},
      .num_by_measure = 1};

  EXPECT_THAT(ChooseOrDie(ranked, 2).kept, ElementsAre(4, 5));
  EXPECT_THAT(ChooseOrDie(ranked, 3).kept, ElementsAre(2, 4, 5));
  EXPECT_THAT(ChooseOrDie(ranked, 4).kept, ElementsAre(0, 2, 4, 5));
}

TEST(ChooseRowsTest, ABrokenNumberKeepsTheRowAndIsCounted) {
  const RankedRows ranked{
      .rows = {{.position = 0, .key = std::nan("")},
               {.position = 1, .key = 100},
               {.position = 2, .measure = std::nanf(""), .key = -1},
               {.position = 3, .key = HUGE_VAL},
               {.position = 4, .key = EvictionRow::kLastKey}}};

  const EvictionDecision four = ChooseOrDie(ranked, 4);
  const EvictionDecision two = ChooseOrDie(ranked, 2);

  EXPECT_THAT(four.kept, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(four.num_non_finite, 3);
  EXPECT_THAT(two.kept, ElementsAre(2, 3));
}

TEST(ChooseRowsTest, RowsWithoutWeightFillUpYoungestFirst) {
  RankedRows ranked;
  for (int64_t p = 0; p < 6; ++p) {
    ranked.rows.push_back({.position = p, .key = EvictionRow::kLastKey});
  }
  ranked.rows[2].key = -1000;

  EXPECT_THAT(ChooseOrDie(ranked, 3).kept, ElementsAre(2, 4, 5));
}

TEST(ChooseRowsTest, MorePinnedThanMayStayIsRefused) {
  const RankedRows ranked{.rows = {{.position = 0, .pinned = true},
                                   {.position = 1, .pinned = true}}};

  const absl::Status status = ChooseRows(ranked, 1).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("2 rows are pinned but only 1 may stay"));
  EXPECT_FALSE(ChooseRows(ranked, -1).ok());
}

TEST(MergeDecisionsTest, APositionOfTwoPartiesIsRefused) {
  const std::vector<EvictionRow> a = {{.position = 6}, {.position = 4}};
  const std::vector<EvictionRow> b = {{.position = 5}, {.position = 6}};
  const std::span<const EvictionRow> parties[] = {a, b};

  EXPECT_THAT(std::string(MergeDecisions(parties, 0, 2).status().message()),
              HasSubstr("position 6 is ranked twice"));
}

// Rows with few different numbers, so that ties decide often.
std::vector<EvictionRow> RandomRows(std::mt19937_64& random, int64_t count) {
  std::vector<EvictionRow> rows;
  for (int64_t p = 0; p < count; ++p) {
    EvictionRow row{.position = 3 * p + static_cast<int64_t>(random() % 3)};
    row.measure = static_cast<float>(random() % 7);
    row.key = static_cast<double>(random() % 9);
    row.pinned = random() % 10 == 0;
    if (random() % 40 == 0) row.key = std::nan("");
    if (random() % 20 == 0) row.key = EvictionRow::kLastKey;
    rows.push_back(row);
  }
  return rows;
}

int64_t NumPinned(const std::vector<EvictionRow>& rows) {
  return std::count_if(rows.begin(), rows.end(),
                       [](const EvictionRow& row) { return row.pinned; });
}

TEST(ChooseRowsTest, KeepsExactlyTheBudgetAndEverythingPinned) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    RankedRows ranked;
    ranked.rows = RandomRows(random, static_cast<int64_t>(random() % 200));
    ranked.num_by_measure = static_cast<int64_t>(random() % 60);
    const int64_t num_kept =
        NumPinned(ranked.rows) + static_cast<int64_t>(random() % 200);
    SCOPED_TRACE(::testing::Message() << "round " << round);

    const EvictionDecision decision = ChooseOrDie(ranked, num_kept);

    EXPECT_EQ(decision.kept.size(),
              std::min(ranked.rows.size(), static_cast<size_t>(num_kept)));
    const std::set<int64_t> kept(decision.kept.begin(), decision.kept.end());
    EXPECT_EQ(kept.size(), decision.kept.size());
    for (const EvictionRow& row : ranked.rows) {
      EXPECT_TRUE(!row.pinned || kept.contains(row.position));
    }
  }
}

TEST(ChooseRowsTest, NeitherTheOrderOfRowsNorTheirSplitIntoPartiesMatters) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    RankedRows ranked;
    ranked.rows = RandomRows(random, 150);
    ranked.num_by_measure = static_cast<int64_t>(random() % 40);
    const int64_t num_kept =
        NumPinned(ranked.rows) + static_cast<int64_t>(random() % 100);
    SCOPED_TRACE(::testing::Message() << "round " << round);

    const EvictionDecision whole = ChooseOrDie(ranked, num_kept);
    std::shuffle(ranked.rows.begin(), ranked.rows.end(), random);
    const EvictionDecision shuffled = ChooseOrDie(ranked, num_kept);
    const auto cut = static_cast<size_t>(random() % 150);
    const std::span<const EvictionRow> all = ranked.rows;
    const std::span<const EvictionRow> parties[] = {all.subspan(cut),
                                                    all.first(cut)};
    const auto merged =
        MergeDecisions(parties, ranked.num_by_measure, num_kept);

    EXPECT_EQ(whole.kept, shuffled.kept);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(whole.kept, merged->kept);
    EXPECT_EQ(whole.num_non_finite, merged->num_non_finite);
  }
}

}  // namespace
}  // namespace farkv

// What holds for every destroying policy, and the registry.
#include "common/policy/destruction_policy.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::RandomHead;
using ::testing::StartsWith;

constexpr int64_t kRows = 384;
constexpr int64_t kKept = 256;

class EveryPolicy : public ::testing::TestWithParam<std::string> {
 protected:
  DestructionPolicy policy() const {
    return *ParseDestructionPolicy(GetParam()).value();
  }
  std::vector<int64_t> KeptOrDie(const EvictionInput& input) const {
    const auto decision = DecideEviction(policy(), input);
    EXPECT_TRUE(decision.ok()) << decision.status();
    return decision.ok() ? decision->kept : std::vector<int64_t>();
  }
  // Queries for the widest window that the policy takes.
  int32_t window() const {
    const bool rkv =
        GetParam() == "rkv-official" || GetParam() == "snap-kv-rkv";
    return rkv ? 8 : 64;
  }
};

std::vector<std::string> Names() {
  std::vector<std::string> names = DestructionPolicyNames();
  names.erase(names.begin());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, ::testing::ValuesIn(Names()),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::replace(name.begin(), name.end(), '-', '0');
                           return name;
                         });

TEST_P(EveryPolicy, KeepsExactlyTheBudget) {
  const RandomHead head(1, kRows, 32, window());
  for (const int64_t kept : {kKept, kRows - 1, kRows, kRows + 5}) {
    EXPECT_EQ(KeptOrDie(head.Input(kept)).size(),
              static_cast<size_t>(std::min(kept, kRows)));
  }
}

TEST_P(EveryPolicy, KeepsWhatIsPinned) {
  RandomHead head(2, kRows, 32, window());
  const PinnedTokens pinned{
      .prompt_tokens = 40, .first_generated = 40, .sinks = 4, .recent = 100};
  head.pinned = PinRows(pinned, head.positions, head.num_tokens);
  std::vector<int64_t> expected;
  for (int64_t p = 0; p < kRows; ++p) {
    if (p < 44 || p >= kRows - 100) expected.push_back(p);
  }

  EXPECT_THAT(KeptOrDie(head.Input(kKept)), IsSupersetOf(expected));
}

TEST_P(EveryPolicy, MorePinnedThanTheBudgetIsAnError) {
  RandomHead head(3, kRows, 32, window());
  head.pinned.assign(kRows, 1);

  EXPECT_THAT(
      std::string(
          DecideEviction(policy(), head.Input(kKept)).status().message()),
      HasSubstr("384 rows are pinned but only 256 may stay"));
}

TEST_P(EveryPolicy, DecidesAlikeOnEveryTarget) {
  const RandomHead head(4, kRows, 48, window());
  const std::vector<int64_t> first = KeptOrDie(head.Input(kKept));

  ForEachHighwayTarget([&] { EXPECT_EQ(KeptOrDie(head.Input(kKept)), first); });
}

TEST_P(EveryPolicy, RanksWithTheSameBitsOnEveryTarget) {
  const RandomHead head(4, kRows, 48, window());
  const auto first = RankRows(policy(), head.Input(kKept));
  ASSERT_TRUE(first.ok()) << first.status();

  ForEachHighwayTarget([&] {
    const auto ranked = RankRows(policy(), head.Input(kKept));
    ASSERT_TRUE(ranked.ok()) << ranked.status();
    for (size_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(ranked->rows[i].measure, first->rows[i].measure) << i;
      ASSERT_EQ(ranked->rows[i].key, first->rows[i].key) << i;
    }
  });
}

// Keys travel between node and worker as fp32.
TEST_P(EveryPolicy, KeysThatANodeMayComputeAreFloats) {
  const PolicyNeeds needs = NeedsOf(policy());
  if (!needs.rows_alone || needs.cumulative) return;
  const RandomHead head(13, kRows, 32, window());
  const auto ranked = RankRows(policy(), head.Input(kKept));
  ASSERT_TRUE(ranked.ok()) << ranked.status();

  for (const EvictionRow& row : ranked->rows) {
    EXPECT_EQ(static_cast<double>(static_cast<float>(row.key)), row.key);
  }
}

// Candidates in any order, and in two parties: one decision.
TEST_P(EveryPolicy, RankedRowsMayComeInAnyOrderAndFromTwoParties) {
  const RandomHead head(5, kRows, 32, window());
  const std::vector<int64_t> whole = KeptOrDie(head.Input(kKept));
  auto ranked = RankRows(policy(), head.Input(kKept));
  ASSERT_TRUE(ranked.ok()) << ranked.status();
  std::mt19937_64 random(6);
  std::shuffle(ranked->rows.begin(), ranked->rows.end(), random);
  const std::span<const EvictionRow> all = ranked->rows;
  const std::span<const EvictionRow> parties[] = {all.first(100),
                                                  all.subspan(100)};

  EXPECT_EQ(ChooseRows(*ranked, kKept)->kept, whole);
  EXPECT_EQ(MergeDecisions(parties, ranked->num_by_measure, kKept)->kept,
            whole);
}

// Each of two nodes sees its own rows and the mass that the worker sent; the
// worker merges what they rank with the rows that only it has.
TEST_P(EveryPolicy, TwoNodesAndTheWorkerDecideAsOneParty) {
  if (!NeedsOf(policy()).rows_alone) {
    // Ranks a head as a whole; a part of it is ranked otherwise.
    EXPECT_THAT(GetParam(), StartsWith("rkv"));
    return;
  }
  const RandomHead head(7, kRows, 32, window());
  EvictionInput input = head.Input(kKept);
  std::vector<float> mass;
  if (NeedsOf(policy()).mass) {
    const auto computed = CandidateMass(
        input,
        GetParam() == "vase-attn-v" ? VaseAttnVPolicy{}.window
                                    : std::get<SnapKvPolicy>(policy()).window,
        "test");
    ASSERT_TRUE(computed.ok()) << computed.status();
    mass = *computed;
  }
  const std::vector<int64_t> whole = KeptOrDie(input);

  std::vector<std::vector<EvictionRow>> ranked;
  for (const auto& [begin, end] :
       {std::pair{0, 128}, std::pair{128, 320}, std::pair{320, 384}}) {
    EvictionInput part = input;
    const auto first = static_cast<size_t>(begin);
    const auto count = static_cast<size_t>(end - begin);
    part.window = {};
    part.positions = input.positions.subspan(first, count);
    part.keys.rows = input.keys.rows.subspan(first, count);
    part.values.rows = input.values.rows.subspan(first, count);
    part.cumulative = input.cumulative.subspan(first, count);
    if (first < mass.size()) {
      part.mass = std::span<const float>(mass).subspan(
          first, std::min(count, mass.size() - first));
    }
    const auto rows = RankRows(policy(), part);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ranked.push_back(rows->rows);
  }
  const std::vector<std::span<const EvictionRow>> parties(ranked.begin(),
                                                          ranked.end());
  const int64_t by_measure = RankRows(policy(), input)->num_by_measure;

  EXPECT_EQ(MergeDecisions(parties, by_measure, kKept)->kept, whole);
}

// Where the rows lie does not matter, only what they hold.
TEST_P(EveryPolicy, Bf16RowsOfPagesDecideAsFloatRowsDo) {
  RandomHead head(8, kRows, 32, window());
  std::vector<uint16_t> keys, values;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int c = 0; c < 32; ++c) {
      keys.push_back(FloatToBf16(head.key(row)[c]));
      values.push_back(FloatToBf16(head.value(row)[c]));
    }
  }
  std::vector<const std::byte*> key_rows, value_rows;
  AppendRows(reinterpret_cast<const std::byte*>(keys.data()), 64, kRows,
             key_rows);
  AppendRows(reinterpret_cast<const std::byte*>(values.data()), 64, kRows,
             value_rows);
  EvictionInput input = head.Input(kKept);
  const std::vector<int64_t> floats = KeptOrDie(input);
  input.keys = {key_rows, 32, DType::kBf16};
  input.values = {value_rows, 32, DType::kBf16};

  EXPECT_EQ(KeptOrDie(input), floats);
}

TEST_P(EveryPolicy, PositionsOutOfOrderAreRefused) {
  RandomHead head(9, kRows, 32, window());
  std::swap(head.positions[7], head.positions[8]);

  EXPECT_THAT(
      std::string(
          DecideEviction(policy(), head.Input(kKept)).status().message()),
      HasSubstr("position 7 where at least 9 must follow"));
}

TEST_P(EveryPolicy, APromptThatFillsTheBudgetIsNotAdmitted) {
  EXPECT_TRUE(CheckAdmission(policy(), 100, 1024).ok());
  EXPECT_THAT(
      std::string(CheckAdmission(policy(), 1024, 1024).message()),
      HasSubstr("a budget of 1024 tokens cannot hold a protected prompt of "
                "1024"));
}

TEST_P(EveryPolicy, ADifferentRequestDrawsAnewOnlyWhereChanceDecides) {
  RandomHead head(10, kRows, 32, window());
  const std::vector<int64_t> first = KeptOrDie(head.Input(kKept));
  head.draws.request += 1;
  const bool random = GetParam() == "random" || GetParam() == "cur-dkv" ||
                      GetParam() == "vase-dkv" || GetParam() == "vase-attn-v";

  EXPECT_EQ(KeptOrDie(head.Input(kKept)) != first, random);
}

TEST(DestructionPolicyTest, AnUnknownNameIsRefusedWithAllKnownOnes) {
  const auto none = ParseDestructionPolicy("none");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
  EXPECT_EQ(ParseDestructionPolicy("H2O").status().message(),
            "eviction is \"H2O\", must be one of none, tiers, h2o, "
            "streaming-llm, snap-kv-prompt, snap-kv-rkv, snap-kv-vase, "
            "rkv-official, rkv-mean, cur-dkv, vase-attn-v, vase-dkv, random, "
            "recency");
}

TEST(DestructionPolicyTest, AdmissionCountsWhatAlwaysStays) {
  // Four sinks and 64 of the buffer, and one more.
  EXPECT_TRUE(CheckAdmission(VaseAttnVPolicy{}, 187, 256).ok());
  EXPECT_FALSE(CheckAdmission(VaseAttnVPolicy{}, 188, 256).ok());
  // Half of the rest is H2O's recent part.
  EXPECT_TRUE(CheckAdmission(H2oPolicy{}, 255, 256).ok());
  EXPECT_FALSE(CheckAdmission(H2oPolicy{}, 256, 256).ok());
  EXPECT_FALSE(CheckAdmission(H2oPolicy{.recent = 128}, 128, 256).ok());
}

TEST(TiersPolicyTest, TheLowestCumulativeAttentionGoes) {
  // ALGORITHMS 1.2: ten unprotected tokens at 4..13, r = 10 %.
  std::vector<int64_t> positions(16), sums(16, 100);
  for (int64_t p = 0; p < 16; ++p) positions[static_cast<size_t>(p)] = p;
  const int64_t scores[] = {5, 1, 9, 2, 8, 3, 7, 4, 6, 0};
  std::copy(scores, scores + 10, sums.begin() + 4);
  const std::vector<uint8_t> pinned =
      PinRows({.first_generated = 0, .sinks = 4, .recent = 2}, positions, 16);
  EvictionInput input;
  input.positions = positions;
  input.num_tokens = 16;
  input.pinned = pinned;
  input.cumulative = sums;
  input.num_kept = 15;
  const TiersPolicy policy{.recent = 2};

  EXPECT_EQ(
      DecideEviction(policy, input)->kept,
      (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15}));
}

TEST(RandomPolicyTest, EachHeadDrawsAloneUnlessShared) {
  RandomHead head(11, kRows, 32, 1);
  const auto kept = [&](bool shared) {
    return DecideEviction(RandomPolicy{.shared = shared}, head.Input(kKept))
        ->kept;
  };
  const auto alone = kept(false);
  const auto shared = kept(true);
  head.draws.kv_head += 1;

  EXPECT_NE(kept(false), alone);
  EXPECT_EQ(kept(true), shared);
}

// A random row survives an event of budget K + b rows, of which K - p are
// drawn, with probability (K - p) / (K - p + b).
TEST(RandomPolicyTest, DrawsUniformly) {
  RandomHead head(12, 320, 16, 1);
  std::vector<int> survived(320);
  constexpr int kEvents = 2000;
  for (int event = 0; event < kEvents; ++event) {
    head.draws.event = static_cast<uint64_t>(event);
    const auto decision = DecideEviction(RandomPolicy{}, head.Input(256));
    for (const int64_t p : decision->kept) {
      ++survived[static_cast<size_t>(p)];
    }
  }
  for (size_t p = 0; p < 256; ++p) {
    EXPECT_NEAR(survived[p] / double{kEvents}, 192.0 / 256, .05) << p;
  }
}

}  // namespace
}  // namespace farkv

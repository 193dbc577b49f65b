#include "memory_node/service/admin_codec.h"

#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

class AdminCodecTest : public DirectoryFixture {};

TEST_F(AdminCodecTest, ASessionIsShownWithItsPagesAndBytes) {
  Open();
  ReserveAndStore(1, {0, 0});
  directory_.Apply(Plan(2, {{1, 0}})).value();
  clock_.Advance(absl::Seconds(2));

  const auto proto = ToProto(directory_.Describe(TestSession(1)).value());

  EXPECT_EQ(proto.session_id(), std::string(4, 1));
  EXPECT_EQ(proto.worker_id(), "worker");
  EXPECT_EQ(proto.pages(), 2u);
  EXPECT_EQ(proto.stored_pages(), 1u);
  EXPECT_EQ(proto.bytes(), 2 * PageLayout::T1(kSmallGeometry).stride);
  EXPECT_EQ(proto.lease_remaining().seconds(), 3);
  EXPECT_EQ(proto.age().seconds(), 2);
  EXPECT_EQ(proto.live_rows(), 2u * kPageTokens);
  EXPECT_FALSE(proto.mapped());
}

TEST_F(AdminCodecTest, APoolCountsReservedStoredAndQuarantinedPages) {
  Open(1);
  ReserveAndStore(1, {0, 0});
  directory_.Apply(Plan(2, {{1, 0}})).value();

  const auto proto =
      PoolToProto(Tier::kT1, pool_.stats(), directory_.stats(), "node", -1);

  EXPECT_EQ(proto.owner_id(), "node");
  EXPECT_EQ(proto.used_pages(), 2u);
  EXPECT_EQ(proto.reserved_pages(), 1u);
  EXPECT_EQ(proto.capacity_pages(), kPages);
  EXPECT_EQ(proto.live_rows(), 2u * kPageTokens);
}

TEST_F(AdminCodecTest, EachPoolCountsItsOwnTier) {
  Open(1);
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {1, 0});
  directory_.Apply(Plan(3, {{2, 0}})).value();
  Compress(4, ToT2({0, 0}));

  const auto t1 =
      PoolToProto(Tier::kT1, pool_.stats(), directory_.stats(), "node", -1);
  const auto t2 =
      PoolToProto(Tier::kT2, t2_pool_.stats(), directory_.stats(), "node", -1);

  EXPECT_EQ(t1.tier(), types::v1::TIER_T1);
  EXPECT_EQ(t1.used_pages(), 2u);
  EXPECT_EQ(t1.quarantined_pages(), 1u);
  EXPECT_EQ(t1.quarantined_bytes(), PageLayout::T1(kSmallGeometry).stride);
  EXPECT_EQ(t1.live_rows(), 2u * kPageTokens);
  EXPECT_EQ(t2.tier(), types::v1::TIER_T2);
  EXPECT_EQ(t2.used_pages(), 1u);
  EXPECT_EQ(t2.reserved_pages(), 0u);
  EXPECT_EQ(t2.live_rows(), 2u * kPageTokens);
}

TEST_F(AdminCodecTest, ATierMapShowsCompressedRows) {
  Open();
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {1, 0});
  ReserveAndStore(3, {0, 1});
  TierPlanCall plan = Plan(4);
  plan.evictions = {{{0, 0}, {1, 0}}};
  directory_.Apply(plan).value();
  Compress(5, ToT2({0, 0}));

  const auto proto =
      TierMapToProto(directory_.Describe(TestSession(1)).value(),
                     directory_.DescribePages(TestSession(1)).value(), "node");

  EXPECT_EQ(proto.pages(0).tiers(), "2" + std::string(63, '1'));
  EXPECT_EQ(proto.sequence().t1_tokens(), 127);
  EXPECT_EQ(proto.sequence().t2_tokens(), 1);
  EXPECT_EQ(proto.sequence().t3_tokens(), 0);
}

TEST_F(AdminCodecTest, ATierMapMergesHeadsAndLayers) {
  Open();
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {1, 0});
  directory_.Apply(Plan(3, {{0, 1}})).value();
  TierPlanCall plan = Plan(4);
  plan.evictions = {{{0, 0}, {1, 0}}, {{1, 0}, {4, 2}}};
  directory_.Apply(plan).value();

  const auto proto =
      TierMapToProto(directory_.Describe(TestSession(1)).value(),
                     directory_.DescribePages(TestSession(1)).value(), "node");

  ASSERT_EQ(proto.pages_size(), 2);
  EXPECT_EQ(proto.pages(0).tiers(), "111" + std::string(61, '3'));
  EXPECT_TRUE(proto.pages(0).stored());
  EXPECT_FALSE(proto.pages(1).stored());
  EXPECT_EQ(proto.sequence().t1_tokens(), 3);
  EXPECT_EQ(proto.sequence().t3_tokens(), 61);
}

}  // namespace
}  // namespace farkv

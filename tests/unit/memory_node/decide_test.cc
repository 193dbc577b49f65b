// Decisions on a node against those of whoever has the same rows.
#include <map>
#include <random>

#include "common/policy/eviction_merge.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/memory_node/deciding_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kStored = 4 * kPageTokens;
constexpr int64_t kNumKept = 150;

// One event of one sequence: every third row of seven has gone before, the
// first three are pinned, and the tail is in no sealed page.
struct Event {
  EvictionCall call;

  Event(const DestructionPolicy& policy, int64_t tail) {
    std::mt19937_64 random(5);
    call.session = TestSession(1);
    call.epoch = Epoch{77};
    call.event = 9;
    call.policy = policy;
    call.num_kept = kNumKept;
    call.num_tokens = kStored + tail;
    call.seed = 3;
    call.request = 8;
    for (int32_t kv_head = 0; kv_head < 2; ++kv_head) {
      EvictionHead& head = call.heads.emplace_back();
      head.layer = kDecidedLayer;
      head.kv_head = kv_head;
      for (int64_t p = 0; p < call.num_tokens; ++p) {
        if (p % 7 == 3) continue;
        if (p < 3 || p >= call.num_tokens - 20) {
          head.always_kept.push_back(p);
          continue;
        }
        head.positions.push_back(p);
        head.mass.push_back(static_cast<float>(ToUnit(random())));
        head.cumulative.push_back(static_cast<int64_t>(random() >> 4));
      }
    }
    const PolicyNeeds needs = NeedsOf(policy);
    for (EvictionHead& head : call.heads) {
      if (!needs.mass) head.mass.clear();
      if (!needs.cumulative) head.cumulative.clear();
    }
  }
};

// The decision of whoever has all rows, from the policy itself.
EvictionDecision DecideBeside(
    const EvictionCall& call, const EvictionHead& head,
    std::map<int32_t, std::vector<std::byte>> blocks) {
  const KvGeometry& g = kSmallGeometry;
  // Rows of the tail, which only the worker has: they stay whatever they hold.
  for (int32_t page = 0; page <= call.num_tokens / kPageTokens; ++page) {
    blocks.try_emplace(page, g.BlockBytes(kPageTokens), std::byte{1});
  }
  const auto h = static_cast<size_t>(head.kv_head);
  std::vector<int64_t> positions;
  std::vector<uint8_t> pinned;
  std::vector<float> mass;
  std::vector<int64_t> cumulative;
  std::vector<const std::byte*> keys, values;
  size_t next = 0;
  for (int64_t p = 0; p < call.num_tokens; ++p) {
    if (p % 7 == 3) continue;
    const bool candidate =
        next < head.positions.size() && head.positions[next] == p;
    positions.push_back(p);
    pinned.push_back(candidate ? 0 : 1);
    if (!head.mass.empty()) mass.push_back(candidate ? head.mass[next] : 0.5f);
    if (!head.cumulative.empty()) {
      cumulative.push_back(candidate ? head.cumulative[next] : 1);
    }
    if (candidate) ++next;
    const auto& block = blocks[static_cast<int32_t>(p / kPageTokens)];
    const auto slot = static_cast<size_t>(p % kPageTokens);
    keys.push_back(block.data() + g.KeyOffset(kPageTokens, h, slot));
    values.push_back(block.data() + g.ValueOffset(kPageTokens, h, slot));
  }
  EvictionInput input;
  input.positions = positions;
  input.num_tokens = call.num_tokens;
  input.num_kept = call.num_kept;
  input.pinned = pinned;
  input.keys = {keys, g.head_dim, g.dtype};
  input.values = {values, g.head_dim, g.dtype};
  input.mass = mass;
  input.cumulative = cumulative;
  input.draws = {call.seed, call.request, static_cast<uint64_t>(head.layer),
                 static_cast<uint64_t>(head.kv_head), call.event};
  return DecideEviction(call.policy, input).value();
}

std::vector<DestructionPolicy> AllPolicies() {
  std::vector<DestructionPolicy> policies;
  for (const std::string& name : DestructionPolicyNames()) {
    const auto policy = ParseDestructionPolicy(name).value();
    if (policy) policies.push_back(*policy);
  }
  return policies;
}

// A policy that compares all rows needs those that are always kept too.
int64_t TailOf(const DestructionPolicy& policy) {
  return NeedsOf(policy).rows_alone ? 10 : 0;
}

std::map<int32_t, std::vector<std::byte>> AllBlocks(DecidingNode& node) {
  std::map<int32_t, std::vector<std::byte>> blocks;
  for (int32_t page = 0; page < 4; ++page) blocks[page] = node.Block(page);
  return blocks;
}

void ExpectDecidedAsBeside(DecidingNode& node, const EvictionCall& call) {
  const auto reply = node.Decide(call);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->heads.size(), call.heads.size());
  for (size_t i = 0; i < call.heads.size(); ++i) {
    const EvictionDecision beside =
        DecideBeside(call, call.heads[i], AllBlocks(node));
    EXPECT_EQ(reply->heads[i].kv_head, call.heads[i].kv_head);
    EXPECT_EQ(reply->heads[i].decision.kept, beside.kept);
    EXPECT_EQ(reply->heads[i].decision.num_non_finite, beside.num_non_finite);
  }
}

TEST(DecideTest, ANodeWithAllRowsDecidesAsTheirOwnerOnEveryHighwayTarget) {
  DecidingNode node({0, 1, 2, 3});
  for (const DestructionPolicy& policy : AllPolicies()) {
    SCOPED_TRACE(DestructionPolicyName(policy));
    Event event(policy, TailOf(policy));
    event.call.final_list = true;
    std::vector<uint32_t> digests;
    ForEachHighwayTarget([&] {
      ExpectDecidedAsBeside(node, event.call);
      digests.push_back(ReplyDigest(node.Decide(event.call).value()));
    });
    EXPECT_THAT(digests, ::testing::Each(digests.front()));
  }
  EXPECT_EQ(node.pins(), 0u);
}

TEST(DecideTest, RowsThatTwoNodesRankMergeToTheDecisionOverAllOfThem) {
  DecidingNode whole({0, 1, 2, 3}), even({0, 2}), odd({1, 3});
  for (const DestructionPolicy& policy : AllPolicies()) {
    if (!NeedsOf(policy).rows_alone) continue;
    SCOPED_TRACE(DestructionPolicyName(policy));
    const Event event(policy, TailOf(policy));
    std::vector<EvictionReply> replies;
    for (DecidingNode* node : {&even, &odd}) {
      const int64_t mine = node == &even ? 0 : 1;
      EvictionCall part = event.call;
      for (EvictionHead& head : part.heads) {
        const EvictionHead all = std::exchange(head, {});
        head.layer = all.layer;
        head.kv_head = all.kv_head;
        for (size_t i = 0; i < all.positions.size(); ++i) {
          if (all.positions[i] / kPageTokens % 2 != mine) continue;
          head.positions.push_back(all.positions[i]);
          if (!all.mass.empty()) head.mass.push_back(all.mass[i]);
          if (!all.cumulative.empty()) {
            head.cumulative.push_back(all.cumulative[i]);
          }
        }
      }
      // Small calls: one event of many.
      const std::vector<EvictionCall> calls = SplitCall(part, 70).value();
      for (const EvictionCall& call : calls) {
        EXPECT_LE(call.NumCandidates(), 70);
        replies.push_back(node->Decide(call).value());
      }
    }
    EXPECT_GE(replies.size(), 4u);

    const auto merged = MergeReplies(event.call, replies);

    ASSERT_TRUE(merged.ok()) << merged.status();
    for (size_t i = 0; i < event.call.heads.size(); ++i) {
      EXPECT_EQ(
          (*merged)[i].kept,
          DecideBeside(event.call, event.call.heads[i], AllBlocks(whole)).kept);
    }
  }
}

TEST(DecideTest, RowsOfT2PagesAreRankedAsEveryPartyDecodesThem) {
  DecidingNode node({0, 1, 2, 3});
  Event event(VaseDkvPolicy{}, 10);
  event.call.final_list = true;
  const uint32_t at_full_precision =
      ReplyDigest(node.Decide(event.call).value());
  node.CompressTo(4, 1);
  node.CompressTo(8, 2);

  EXPECT_NE(ReplyDigest(node.Decide(event.call).value()), at_full_precision);
  for (const DestructionPolicy& policy : AllPolicies()) {
    SCOPED_TRACE(DestructionPolicyName(policy));
    event = Event(policy, TailOf(policy));
    event.call.final_list = true;
    ExpectDecidedAsBeside(node, event.call);
  }
}

TEST(DecideTest, ARankedRowSaysWhyItWouldStay) {
  DecidingNode node({0});
  EvictionCall call = Event(VaseAttnVPolicy{}, 0).call;
  call.num_tokens = 70;  // the window begins at 6
  call.heads = {{.layer = kDecidedLayer,
                 .kv_head = 1,
                 .positions = {2, 5, 9},
                 .mass = {0.5f, 0, 0.25f}}};

  const auto reply = node.Decide(call);

  ASSERT_TRUE(reply.ok()) << reply.status();
  const std::vector<EvictionRow>& rows = reply->heads[0].rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].pinned);  // a sink
  EXPECT_FALSE(rows[1].pinned);
  EXPECT_TRUE(rows[2].pinned);  // of the window
  EXPECT_EQ(rows[1].position, 5);
  EXPECT_GT(rows[1].measure, 0);
  EXPECT_EQ(rows[1].key, EvictionRow::kLastKey);
}

TEST(DecideTest, AMassThatIsNoNumberKeepsItsRowAndIsCounted) {
  DecidingNode node({0, 1, 2, 3});
  Event event(SnapKvPolicy::Vase(), 10);
  event.call.final_list = true;
  event.call.heads[0].mass[17] = std::nanf("");

  const auto reply = node.Decide(event.call);

  ASSERT_TRUE(reply.ok()) << reply.status();
  const EvictionDecision& decision = reply->heads[0].decision;
  EXPECT_EQ(decision.num_non_finite, 1);
  EXPECT_THAT(decision.kept,
              ::testing::Contains(event.call.heads[0].positions[17]));
  EXPECT_EQ(node.log().List(EvictionLog::kNewest, 1)[0].non_finite, 1);
}

TEST(DecideTest, APageThatMovesWhileItIsReadDecidesNothing) {
  DecidingNode node({0, 1});
  const std::vector<RowsWanted> wanted = {{{kDecidedLayer, 0}, 0, 5},
                                          {{kDecidedLayer, 1}, 1, 9}};
  const auto begin = [&] {
    return node.directory()
        .BeginRead(TestSession(1), Epoch{77}, wanted)
        .value();
  };
  const ReadTicket first = begin();
  EXPECT_TRUE(node.directory().CheckRead(first).ok());
  node.CompressTo(8, 1);
  const absl::Status moved = node.directory().CheckRead(first);
  const ReadTicket second = begin();
  node.Free(0);
  const absl::Status freed = node.directory().CheckRead(second);

  EXPECT_EQ(moved.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(moved.message()), HasSubstr("layer 1, page 1"));
  EXPECT_EQ(freed.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(freed.message()), HasSubstr("layer 1, page 0"));
}

TEST(DecideTest, AnEndedSessionDecidesNothing) {
  DecidingNode node({0, 1, 2, 3});
  const Event event(RandomPolicy{}, 10);
  const ReadTicket ticket =
      node.directory().BeginRead(TestSession(1), Epoch{77}, {}).value();
  node.clock().Advance(absl::Seconds(6));

  const auto late = node.Decide(event.call);

  EXPECT_EQ(late.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(late.status()), ErrorReason::kLeaseExpired);
  EXPECT_EQ(node.directory().CheckRead(ticket).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(node.log().List(EvictionLog::kNewest, 10).empty());
}

}  // namespace
}  // namespace farkv

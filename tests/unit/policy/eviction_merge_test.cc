#include "common/policy/eviction_merge.h"

#include "gmock/gmock.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EvictionHead HeadOf(int32_t kv_head, std::vector<int64_t> positions) {
  EvictionHead head;
  head.kv_head = kv_head;
  for (const int64_t position : positions) {
    head.mass.push_back(static_cast<float>(position));
  }
  head.positions = std::move(positions);
  return head;
}

EvictionCall CallOf(std::vector<EvictionHead> heads) {
  EvictionCall call;
  call.policy = SnapKvPolicy::Rkv();  // the larger mass stays
  call.num_kept = 3;
  call.num_tokens = 100;
  call.heads = std::move(heads);
  return call;
}

// What a node would answer.
EvictionReply Rank(const EvictionCall& call) {
  EvictionReply reply;
  for (const EvictionHead& head : call.heads) {
    reply.heads.push_back(
        RankHead(call, head, HeadRows::Of(head), {}, {}).value());
  }
  return reply;
}

// The candidates of each call, as head * 1000 + position.
std::vector<std::vector<int64_t>> Shape(
    const std::vector<EvictionCall>& calls) {
  std::vector<std::vector<int64_t>> shape;
  for (const EvictionCall& call : calls) {
    auto& of_call = shape.emplace_back();
    for (const EvictionHead& head : call.heads) {
      for (const int64_t p : head.positions) {
        of_call.push_back(1000 * head.kv_head + p);
      }
      EXPECT_EQ(head.mass.size(), head.positions.size());
      EXPECT_EQ(head.mass.front(), static_cast<float>(head.positions.front()));
    }
  }
  return shape;
}

TEST(SplitCallTest, HeadsAreCutWhereRowsAreRanked) {
  const EvictionCall call =
      CallOf({HeadOf(0, {1, 2, 3, 4, 5}), HeadOf(1, {6}), HeadOf(2, {7, 8})});

  EXPECT_THAT(Shape(SplitCall(call, 3).value()),
              ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4, 5, 1006),
                          ElementsAre(2007, 2008)));
  EXPECT_EQ(SplitCall(call).value().size(), 1u);
}

TEST(SplitCallTest, HeadsStayWholeWhereTheNodeDecides) {
  EvictionCall call =
      CallOf({HeadOf(0, {1, 2}), HeadOf(1, {6, 7}), HeadOf(2, {8})});
  call.final_list = true;

  EXPECT_THAT(Shape(SplitCall(call, 3).value()),
              ElementsAre(ElementsAre(1, 2), ElementsAre(1006, 1007, 2008)));
  call.heads[1].always_kept = {20, 21, 22, 23};
  EXPECT_THAT(std::string(SplitCall(call, 3).status().message()),
              HasSubstr("layer 0, head 1: 4 rows of one head, at most 3"));
}

TEST(MergeRepliesTest, RowsThatAreAlwaysKeptNeedNotBeRanked) {
  EvictionCall call = CallOf({HeadOf(0, {1, 2, 3, 4, 5})});
  call.heads[0].always_kept = {0, 99};
  std::vector<EvictionReply> replies;
  const std::vector<EvictionCall> parts = SplitCall(call, 2).value();
  for (const EvictionCall& part : parts) replies.push_back(Rank(part));
  ASSERT_EQ(replies.size(), 3u);
  std::swap(replies[0], replies[2]);  // answers come in any order

  const auto merged = MergeReplies(call, replies);

  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT((*merged)[0].kept, ElementsAre(0, 5, 99));
}

TEST(MergeRepliesTest, ALostOrRepeatedAnswerDestroysNothing) {
  const EvictionCall call = CallOf({HeadOf(3, {1, 2, 3, 4, 5})});
  std::vector<EvictionReply> replies;
  const std::vector<EvictionCall> parts = SplitCall(call, 3).value();
  for (const EvictionCall& part : parts) replies.push_back(Rank(part));

  const auto lost = MergeReplies(call, std::span(replies).first(1));
  replies.push_back(replies.front());
  const auto repeated = MergeReplies(call, replies);

  EXPECT_EQ(lost.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lost.status().message()),
              HasSubstr("layer 0, head 3: 3 rows were ranked for 5"));
  EXPECT_THAT(std::string(repeated.status().message()),
              HasSubstr("8 rows were ranked for 5"));
}

TEST(MergeRepliesTest, RowsThatWereComparedWithAllOthersCannotBeMerged) {
  EvictionCall call = CallOf({HeadOf(0, {1, 2})});
  call.policy = RkvPolicy::Mean();

  EXPECT_EQ(MergeReplies(call, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(EvictionPolicyNamesTest, EveryPolicyIsNamedAsItIsParsed) {
  for (const std::string& name : DestructionPolicyNames()) {
    const auto policy = ParseDestructionPolicy(name).value();
    if (!policy) continue;
    EXPECT_EQ(DestructionPolicyName(*policy), name);
  }
}

}  // namespace
}  // namespace farkv

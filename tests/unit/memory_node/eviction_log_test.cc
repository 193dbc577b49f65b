#include "memory_node/data/eviction_log.h"

#include <cmath>

#include "tests/unit/memory_node/deciding_node.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EvictionCall CallOf(size_t rows, uint8_t session = 1) {
  EvictionCall call;
  call.session = TestSession(session);
  call.epoch = Epoch{77};
  call.policy = RandomPolicy{};
  call.num_kept = 4;
  call.num_tokens = 1000;
  EvictionHead& head = call.heads.emplace_back();
  head.layer = kDecidedLayer;
  head.positions.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    head.positions[i] = static_cast<int64_t>(i);
  }
  return call;
}

std::vector<uint64_t> Ids(const std::vector<LoggedDecision>& decisions) {
  std::vector<uint64_t> ids;
  for (const LoggedDecision& decision : decisions) ids.push_back(decision.id);
  return ids;
}

TEST(EvictionLogTest, TheOldestDecisionsGoWhenThereAreTooMany) {
  EvictionLog log({.decisions = 3, .input_bytes = size_t{1} << 20});
  for (uint64_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(log.Add(CallOf(2), {}, absl::UnixEpoch()), i);
  }

  EXPECT_THAT(Ids(log.List(EvictionLog::kNewest, 10)), ElementsAre(5, 4, 3));
  EXPECT_THAT(Ids(log.List(5, 1)), ElementsAre(4));
  EXPECT_TRUE(log.List(3, 10).empty());
  EXPECT_THAT(std::string(log.Find(2).status().message()),
              HasSubstr("no decision 2: the log has 3 to 5"));
}

TEST(EvictionLogTest, TheOldestInputsGoWhenTheyTakeTooMuchAndTheRestStays) {
  EvictionLog log({.decisions = 8, .input_bytes = 20000});
  for (int i = 0; i < 4; ++i) log.Add(CallOf(1000), {}, absl::UnixEpoch());
  log.Add(CallOf(3000), {}, absl::UnixEpoch());  // more than fits by itself
  log.Add(CallOf(100), {}, absl::UnixEpoch());

  std::vector<bool> has_inputs;
  for (const LoggedDecision& decision : log.List(EvictionLog::kNewest, 10)) {
    has_inputs.push_back(decision.call != nullptr);
  }
  EXPECT_THAT(has_inputs, ElementsAre(true, false, false, false, false, false));
  EXPECT_EQ(log.Find(1)->candidates, 1000);
}

TEST(EvictionLogTest, OneSessionsDecisionsCanBeAskedFor) {
  EvictionLog log;
  log.Add(CallOf(2, 1), {}, absl::UnixEpoch());
  log.Add(CallOf(2, 2), {}, absl::UnixEpoch());
  log.Add(CallOf(2, 1), {}, absl::UnixEpoch());

  const auto of_first = SessionPattern::FromHex("01010101").value();

  EXPECT_THAT(Ids(log.List(EvictionLog::kNewest, 10, of_first)),
              ElementsAre(3, 1));
}

TEST(EvictionLogTest, ADigestTellsAnswersApart) {
  const EvictionRow row{.position = 7, .measure = 1, .key = 2};
  EvictionReply ranked;
  ranked.heads = {{.layer = 1, .kv_head = 0, .rows = {row}, .decision = {}}};
  EvictionReply kept;
  kept.heads = {{.layer = 1, .kv_head = 0, .rows = {}, .decision = {{7}, 0}}};
  const uint32_t digest = ReplyDigest(ranked);
  EvictionReply other = ranked;
  other.decision_id = 12;

  EXPECT_EQ(ReplyDigest(other), digest);
  EXPECT_NE(ReplyDigest(kept), digest);
  other.heads[0].rows[0].key = std::nextafter(2.0, 3.0);
  EXPECT_NE(ReplyDigest(other), digest);
  other.heads[0].rows[0] = row;
  other.heads[0].rows[0].pinned = true;
  EXPECT_NE(ReplyDigest(other), digest);
}

TEST(EvictionLogTest, ADecisionOfTheLogComesOutTheSameAgain) {
  DecidingNode node({0, 1});
  EvictionCall call = CallOf(100);
  call.policy = VaseDkvPolicy{};
  call.seed = 5;
  call.num_kept = 80;
  call.num_tokens = 128;
  for (const bool final_list : {false, true}) {
    call.final_list = final_list;
    const EvictionReply reply = node.Decide(call).value();
    const LoggedDecision logged = node.log().Find(reply.decision_id).value();
    EXPECT_EQ(logged.policy, "vase-dkv");
    EXPECT_EQ(logged.seed, 5u);
    EXPECT_EQ(logged.candidates, 100);
    EXPECT_EQ(logged.kept, final_list ? 80 : 0);

    const auto again = ReplayDecision(node.context(), logged);

    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(again->same);
    EXPECT_EQ(again->reply.heads[0].decision.kept,
              reply.heads[0].decision.kept);
  }
  EXPECT_EQ(node.log().List(EvictionLog::kNewest, 10).size(), 2u);
}

TEST(EvictionLogTest, AReplaySaysWhenRowsAreOthersOrGone) {
  DecidingNode node({0, 1});
  EvictionCall call = CallOf(100);
  call.policy = VaseDkvPolicy{};
  const uint64_t id = node.Decide(call).value().decision_id;
  LoggedDecision logged = node.log().Find(id).value();

  node.CompressTo(4, 1);
  const auto compressed = ReplayDecision(node.context(), logged);
  node.Free(1);
  const auto freed = ReplayDecision(node.context(), logged);
  logged.call = nullptr;
  const auto dropped = ReplayDecision(node.context(), logged);

  ASSERT_TRUE(compressed.ok()) << compressed.status();
  EXPECT_FALSE(compressed->same);
  EXPECT_EQ(freed.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(dropped.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(dropped.status().message()),
              HasSubstr("decision 1: its inputs were dropped"));
}

}  // namespace
}  // namespace farkv

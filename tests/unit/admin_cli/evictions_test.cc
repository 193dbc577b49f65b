#include "admin_cli/evictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace farkv {
namespace {

using admin::v1::ListEvictionsResponse;
using ::testing::HasSubstr;

ListEvictionsResponse::Decision SomeDecision() {
  ListEvictionsResponse::Decision decision;
  decision.set_decision_id(12);
  decision.set_session_id("\x0a\x0b\x0c\x0d");
  decision.set_policy("vase-attn-v");
  decision.set_event(4);
  decision.set_heads(2);
  decision.set_candidates(300);
  decision.set_kept(128);
  decision.set_budget_tokens(64);
  decision.set_num_tokens(1000);
  decision.set_final_list(true);
  decision.set_seed(~uint64_t{0});
  decision.set_digest(0xabc);
  decision.set_can_be_replayed(true);
  decision.mutable_age()->set_nanos(1250000000 - 1000000000);
  decision.mutable_age()->set_seconds(1);
  return decision;
}

std::string Printed(const ListEvictionsResponse::Decision& decision,
                    const char* format) {
  Output output = EvictionOutput();
  AddDecision(decision, "127.0.0.1:7402", output);
  std::stringstream out;
  output.Print(format, out);
  return out.str();
}

TEST(EvictionsTest, ADecisionIsARowOfTheTable) {
  EXPECT_THAT(
      Printed(SomeDecision(), "table"),
      ::testing::MatchesRegex(
          "DECISION +PROCESS +SESSION +EVENT +POLICY +.*\n"
          "12 +127.0.0.1:7402 +0a0b0c0d +4 +vase-attn-v +decided +2 "
          "+300 +128 +0 +0 +64 +1000 +0 +0 +18446744073709551615 +00000abc "
          "+true +1.2s\n"));
}

TEST(EvictionsTest, ADecisionIsAnItemOfTheJson) {
  const std::string text = Printed(SomeDecision(), "json");

  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document["apiVersion"], "farkv/v1");
  EXPECT_EQ(document["kind"], "EvictionList");
  ASSERT_EQ(document["items"].size(), 1u);
  const auto& item = document["items"][0];
  EXPECT_EQ(item["id"], 12);
  EXPECT_EQ(item["session"], "0a0b0c0d");
  EXPECT_EQ(item["candidates"], 300);
  EXPECT_EQ(item["seed"], ~uint64_t{0});
  EXPECT_EQ(item["canBeReplayed"], true);
}

TEST(EvictionsTest, RowsThatOthersChoseAmongAreSaidToBeRanked) {
  ListEvictionsResponse::Decision decision = SomeDecision();
  decision.set_final_list(false);
  decision.set_kept(0);

  EXPECT_THAT(Printed(decision, "table"), HasSubstr("  ranked "));
}

TEST(EvictionsTest, AWorkersDecisionSaysWhatItDestroyed) {
  ListEvictionsResponse::Decision decision = SomeDecision();
  decision.set_destroyed_rows(172);
  decision.set_layers_by_nodes(3);

  EXPECT_THAT(
      Printed(decision, "table"),
      HasSubstr("  destroyed  2      300         128   172        3  "));
}

TEST(EvictionsTest, AReplayIsTheSameOrDiffersOrCannotBe) {
  admin::v1::ReplayEvictionResponse same, differs;
  same.set_same(true);
  same.set_digest(0xabc);
  differs.set_digest(0xdef);
  Output output = ReplayOutput();

  AddReplay(SomeDecision(), "node", &same, "", output);
  AddReplay(SomeDecision(), "node", &differs, "", output);
  AddReplay(SomeDecision(), "node", nullptr, "its inputs were dropped", output);

  std::stringstream out;
  output.Print("json", out);
  const auto items = nlohmann::json::parse(out.str())["items"];
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0]["result"], "same");
  EXPECT_EQ(items[0]["digestAgain"], "00000abc");
  EXPECT_EQ(items[1]["result"], "differs");
  EXPECT_EQ(items[1]["digestAgain"], "00000def");
  EXPECT_EQ(items[2]["result"], "gone");
  EXPECT_EQ(items[2]["why"], "its inputs were dropped");
}

}  // namespace
}  // namespace farkv

// The rows and rates of `top`, and how a round is printed.
#include "admin_cli/top_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "admin_cli/top.h"
#include "tests/unit/admin_cli/top_samples.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr char kStored[] = "farkv_node_store_bytes_total";
constexpr char kLate[] = "farkv_worker_late_fetches_total";

std::string Table(const TopTables& tables, size_t index) {
  std::stringstream out;
  tables.Tables()[index].Print("wide", out);
  return out.str();
}

std::optional<double> Rate(const ProcessSample& before,
                           const ProcessSample& now) {
  return RatePerSecond(before.process, now.process, kStored);
}

TEST(TopRateTest, ARateIsTheRiseOverTheTimeThatTheProcessCounted) {
  EXPECT_THAT(Rate(SampleOf(false, "n", 10, {{kStored, 100}}),
                   SampleOf(false, "n", 14, {{kStored, 500}})),
              Optional(100.0));
  EXPECT_THAT(Rate(SampleOf(false, "n", 10, {{kStored, 100}}),
                   SampleOf(false, "n", 14, {{kStored, 100}})),
              Optional(0.0));
}

// Started again, with whatever it has counted since.
TEST(TopRateTest, AnotherLifeOfAProcessHasNoRateYet) {
  const ProcessSample before = SampleOf(false, "n", 10, {{kStored, 100}});
  const ProcessSample younger = SampleOf(false, "n", 2, {{kStored, 5000}});
  ProcessSample later = SampleOf(false, "n", 60, {{kStored, 5000}});
  later.process.set_epoch(8);
  const ProcessSample other = SampleOf(false, "m", 60, {{kStored, 5000}});

  EXPECT_EQ(Rate(before, younger), std::nullopt);
  EXPECT_EQ(Rate(before, later), std::nullopt);
  EXPECT_EQ(Rate(before, other), std::nullopt);
}

TEST(TopRateTest, ACounterThatFellOrIsMissingHasNoRate) {
  const ProcessSample before = SampleOf(false, "n", 10, {{kStored, 100}});

  EXPECT_EQ(Rate(before, SampleOf(false, "n", 11, {{kStored, 99}})),
            std::nullopt);
  EXPECT_EQ(Rate(before, SampleOf(false, "n", 11, {})), std::nullopt);
  EXPECT_EQ(Rate(SampleOf(false, "n", 9, {}), before), std::nullopt);
  EXPECT_EQ(Rate(before, before), std::nullopt);
}

TEST(TopTablesTest, TheFirstRoundHasNoRatesAndTheSecondHas) {
  TopTables tables;
  tables.Add({SampleOf(false, "n", 10, {{kStored, 0}})}, absl::UnixEpoch());
  EXPECT_THAT(Table(tables, 0), ContainsRegex("n +ready +0 +- +- +-"));

  tables.Add({SampleOf(false, "n", 12, {{kStored, 4 << 20}})},
             absl::UnixEpoch());

  EXPECT_THAT(Table(tables, 0), ContainsRegex("n +ready +0 +2MiB/s +- +-"));
  EXPECT_THAT(tables.Summary(), HasSubstr("stored 2MiB/s, fetched -"));
  EXPECT_EQ(tables.ExitCode(), kExitOk);
}

TEST(TopTablesTest, ASilentNodeKeepsItsNameAndItsRateGoesOnWhenItAnswers) {
  TopTables tables;
  tables.Add({SampleOf(false, "n", 10, {{kStored, 0}})}, absl::UnixEpoch());
  tables.Add({SilentSample(false, "n")}, absl::UnixEpoch());
  EXPECT_THAT(Table(tables, 0), ContainsRegex("n +silent +- +- +-"));
  EXPECT_EQ(tables.ExitCode(), kExitUnhealthy);

  tables.Add({SampleOf(false, "n", 20, {{kStored, 10 << 10}})},
             absl::UnixEpoch());

  EXPECT_THAT(Table(tables, 0), ContainsRegex("n +ready +0 +1KiB/s"));
}

TEST(TopTablesTest, WhoNeverAnsweredIsShownByAddress) {
  TopTables tables;
  ProcessSample gone = SilentSample(true, "w");
  gone.status = absl::UnavailableError("failed to connect");
  tables.Add({SampleOf(false, "n", 1, {}), gone}, absl::UnixEpoch());

  EXPECT_THAT(Table(tables, 2), ContainsRegex("w:1 +unreachable "));
  EXPECT_THAT(tables.Summary(), HasSubstr("1/1 nodes, 0/1 workers"));
  EXPECT_EQ(tables.ExitCode(), kExitPartial);
}

TEST(TopTablesTest, ANodeShowsTheTransportOfEachWorkerToIt) {
  TopTables tables;
  ProcessSample mapped = SampleOf(true, "w1", 1, {});
  ProcessSample cut = SampleOf(true, "w2", 1, {});
  admin::v1::Peer peer;
  peer.set_id("n");
  peer.set_transport("map");
  peer.set_healthy(true);
  mapped.peers = {peer};
  peer.set_healthy(false);
  cut.peers = {peer};
  peer.set_id("another");
  mapped.peers.push_back(peer);
  tables.Add({SampleOf(false, "n", 1, {}), mapped, cut}, absl::UnixEpoch());

  EXPECT_THAT(Table(tables, 0), HasSubstr("w1:map,w2:down "));
}

TEST(TopTablesTest, WhatIsFreeIsNeitherUsedNorInQuarantine) {
  TopTables tables;
  ProcessSample node = SampleOf(false, "n", 1, {});
  admin::v1::Pool pool;
  pool.set_owner_id("n");
  pool.set_tier(types::v1::TIER_T1);
  pool.set_numa_node(1);
  pool.set_capacity_bytes(4096);
  pool.set_used_bytes(1024);
  pool.set_quarantined_bytes(1024);
  node.pools = {pool};
  tables.Add({node}, absl::UnixEpoch());

  EXPECT_THAT(Table(tables, 1),
              ContainsRegex("n +T1 +1 +4KiB +1KiB +2KiB +25% +0 +1KiB"));
}

TEST(TopTablesTest, AWorkerShowsItsLoadAndItsLateFetches) {
  const SampledMetrics load = {{"farkv_worker_running_sequences", 3},
                               {"farkv_worker_waiting_requests", 2},
                               {"farkv_worker_t0_used_bytes", 1024},
                               {"farkv_worker_t0_capacity_bytes", 4096},
                               {"farkv_worker_generated_tokens_total", 0},
                               {"farkv_worker_promoted_tokens_total", 0},
                               {kLate, 40}};
  SampledMetrics later = load;
  later["farkv_worker_generated_tokens_total"] = 100;
  later["farkv_worker_promoted_tokens_total"] = 30;
  later[kLate] = 45;
  TopTables tables;
  tables.Add({SampleOf(true, "w", 10, load)}, absl::UnixEpoch());
  tables.Add({SampleOf(true, "w", 20, later)}, absl::UnixEpoch());

  EXPECT_THAT(Table(tables, 2),
              ContainsRegex("w +ready +3 +2 +1KiB +25% +10.0 +3.0 +45 +0.5"));
  EXPECT_THAT(tables.Summary(), HasSubstr("promoted/s 3.0, late 45 (0.5/s)"));
}

TEST(TopTablesTest, ControlCharactersOfNamesDoNotReachTheTerminal) {
  TopTables tables;
  ProcessSample node = SampleOf(false, "n\x1b[2J", 1, {});
  ProcessSample worker = SampleOf(true, "w\x1b", 1, {});
  admin::v1::Peer peer;
  peer.set_id(node.process.id());
  worker.peers = {peer};
  tables.Add({node, worker}, absl::UnixEpoch());

  EXPECT_EQ(Table(tables, 0).find('\x1b'), std::string::npos);
}

std::string Printed(const TopTables& tables, const std::string& format,
                    bool first) {
  OutputOptions options;
  options.format = format;
  std::stringstream out;
  PrintTop(tables, options, first, out);
  return out.str();
}

TEST(TopPrintTest, ARoundOfJsonIsOneLineWithNullsForWhatIsNotKnown) {
  TopTables tables;
  tables.Add({SampleOf(false, "n", 1, {{kStored, 5}}), SilentSample(true, "w")},
             absl::UnixEpoch());

  const std::string line = Printed(tables, "json", false);

  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto document = nlohmann::json::parse(line);
  EXPECT_EQ(document["kind"], "Top");
  EXPECT_EQ(document["apiVersion"], "farkv/v1");
  EXPECT_EQ(document["time"], "1970-01-01T00:00:00+00:00");
  EXPECT_EQ(document["nodes"][0]["node"], "n");
  EXPECT_TRUE(document["nodes"][0]["storedBytesPerSecond"].is_null());
  EXPECT_EQ(document["workers"][0]["state"], "silent");
  EXPECT_EQ(document["total"]["workersUp"], 0);
}

TEST(TopPrintTest, ABlockBehindAnotherBeginsWithALineBetween) {
  TopTables tables;
  tables.Add({SampleOf(false, "n", 1, {})}, absl::UnixEpoch());

  EXPECT_THAT(Printed(tables, "table", false), ::testing::StartsWith("---\n"));
  EXPECT_THAT(Printed(tables, "yaml", false), ::testing::StartsWith("---\n"));
  EXPECT_THAT(Printed(tables, "table", true),
              AllOf(HasSubstr("1/1 nodes"), HasSubstr("\n\nNODE "),
                    HasSubstr("\n\nOWNER "), HasSubstr("\n\nWORKER ")));
}

TEST(TopPrintTest, ARoundWaitsAnIntervalWithinBoundsAndTheTimeout) {
  CliOptions options;
  options.top.interval = absl::Milliseconds(1);
  EXPECT_EQ(RoundDeadline(options), absl::Seconds(1));
  options.top.interval = absl::Minutes(1);
  EXPECT_EQ(RoundDeadline(options), absl::Seconds(2));
  options.timeout = absl::Milliseconds(300);
  EXPECT_EQ(RoundDeadline(options), absl::Milliseconds(300));
}

}  // namespace
}  // namespace farkv

// Every flag of farkv-worker refuses what it cannot mean.
#include "gpu_worker/worker_flags.h"

#include <gtest/gtest.h>

#include "tests/testing/flag_table.h"

namespace farkv {
namespace {

using testing::ExpectRefusals;
using testing::FlagTable;
using testing::RefusalOf;

const std::vector<std::string> kBadAddresses = {
    "",       ":80",         "host",   "host:99999", "host:-1",
    "::1:80", "http://x:80", "a b:80", "host:8o",    "host: 80"};
const std::vector<std::string> kBadDurations = {"",    "5",   "0s",      "-5s",
                                                "inf", "1ns", "9999999h"};
const std::vector<std::string> kBadRatios = {"", "1.1", "-0.1", "nan", "30%"};
const std::vector<std::string> kBadCounts = {"", "-1", "1.5", "x",
                                             "99999999999999999999"};
const std::vector<std::string> kBadSwitches = {"yes", "2"};

FlagTable Table() {
  return {
      {"listen", kBadAddresses},
      {"admin-listen", kBadAddresses},
      {"metrics-listen", kBadAddresses},
      {"memory-nodes",
       {",", "host", "a:1,", "a:1,,b:2", "a:1,a:1", "a:0", "a:99999", "a b:1"}},
      {"device", {"", "tpu", "CPU"}},
      {"t0-bytes", {"", "64", "-1GiB", "1.5GiB", "99999999999TiB"}},
      {"lease", kBadDurations},
      {"heartbeat", kBadDurations},
      {"drain-grace", kBadDurations},
      {"tenant", {"", "a/b", "a b", "..", std::string(300, 'x')}},
      {"spread", kBadSwitches},
      {"protect-prompt", kBadSwitches},
      {"max-sequences", kBadCounts},
      {"max-queue", kBadCounts},
      {"threads", kBadCounts},
      {"seed", kBadCounts},
      {"granularity", {"", "7", "0", "65", "x"}},
      {"interval", {"", "0", "-1", "x"}},
      {"sinks", kBadCounts},
      {"recent", kBadCounts},
      {"budget-tokens", kBadCounts},
      {"stripe", {"", "63", "100", "x"}},
      {"replicas", {"", "0", "3", "2"}},
      {"t2-bits", {"", "3", "9", "5"}},
      {"hbm-ratio", kBadRatios},
      {"hysteresis", kBadRatios},
      {"per-event-ratio", kBadRatios},
      {"cumulative-cap", kBadRatios},
      {"budget-ratio", kBadRatios},
      {"t2-ratio", kBadRatios},
      {"kv-dtype", {"", "fp8"}},
      {"prompt-placement", {"", "t1"}},
      {"placement", {"", "lru"}},
      {"eviction", {"", "h2o"}},
      {"selection", {"", "quest"}},
      {"cold", {"", "warm"}},
      {"exactness", {"", "loose"}},
      {"log-level", {"", "loud", "INFO"}},
      {"log-format", {"", "xml"}},
      {"map-dir", {"/nonexistent/dir"}},
      {"model", {}},
      {"port-file", {}},
      {"tls-ca", {}},
      {"tls-cert", {}},
      {"tls-key", {}},
  };
}

TEST(WorkerFlagsTest, EveryFlagRefusesWhatItCannotMeanNamingIt) {
  ExpectRefusals<WorkerFlags>(Table(), {"--model=x"});
}

TEST(WorkerFlagsTest, BoundsThemselvesAreTaken) {
  EXPECT_EQ(RefusalOf<WorkerFlags>(
                {"--model=x", "--lease=1s", "--heartbeat=1ms", "--stripe=64",
                 "--hbm-ratio=0", "--memory-nodes=a:1,[::1]:65535"}),
            "");
  EXPECT_EQ(
      RefusalOf<WorkerFlags>({"--model=x", "--lease=24h", "--heartbeat=12h",
                              "--hbm-ratio=1", "--memory-nodes="}),
      "");
}

TEST(WorkerFlagsTest, ASelectionNeedsOneBudgetAndAnEvictionTheOtherFlags) {
  const auto said = [](std::vector<std::string> flags) {
    flags.emplace_back("--model=x");
    return RefusalOf<WorkerFlags>(flags);
  };
  using ::testing::HasSubstr;

  EXPECT_EQ(said({"--selection=quest", "--budget-ratio=0.25"}), "");
  EXPECT_EQ(said({"--selection=quest", "--budget-tokens=256", "--eviction=h2o",
                  "--per-event-ratio=0.03", "--cumulative-cap=0.1"}),
            "");
  EXPECT_THAT(said({"--selection=quest"}),
              HasSubstr("--selection is quest and 0 budgets are given"));
  EXPECT_THAT(
      said({"--selection=quest", "--budget-tokens=64", "--budget-ratio=0.5"}),
      HasSubstr("--selection is quest and 2 budgets are given"));
  EXPECT_THAT(
      said({"--selection=quest", "--budget-tokens=64", "--eviction=h2o"}),
      HasSubstr("needs --per-event-ratio with --cumulative-cap"));
  EXPECT_THAT(said({"--budget-tokens=64"}),
              HasSubstr("--budget-tokens is above 0, but --eviction is none, "
                        "which destroys nothing, and --selection is none"));
}

TEST(WorkerFlagsTest, HysteresisIsOfTheScoresFixedPoint) {
  WorkerFlags options;
  Flags flags({"farkv-test", "Tests flags.", "1"});
  options.Register(flags);
  ASSERT_FALSE(
      flags
          .Parse({"--model=x", "--hysteresis=0.25"},
                 [](const std::string&) -> const char* { return nullptr; })
          .has_value());
  ASSERT_TRUE(options.Finish().ok());

  EXPECT_EQ(options.engine.placement.hysteresis, int64_t{1} << 38);
}

TEST(WorkerFlagsTest, T0IsNotEmpty) {
  EXPECT_THAT(RefusalOf<WorkerFlags>({"--model=x", "--t0-bytes=0B"}),
              ::testing::HasSubstr("--t0-bytes is 0"));
}

TEST(WorkerFlagsTest, AHeartbeatFitsItsLease) {
  const std::string said =
      RefusalOf<WorkerFlags>({"--model=x", "--lease=10s", "--heartbeat=6s"});

  EXPECT_THAT(said, ::testing::HasSubstr("--heartbeat is 6s"));
  EXPECT_THAT(said, ::testing::HasSubstr("--lease, 10s"));
}

TEST(WorkerFlagsTest, AnEvictionNeedsExactlyOneBudget) {
  const auto said = [](std::vector<std::string> flags) {
    flags.emplace_back("--model=x");
    return RefusalOf<WorkerFlags>(flags);
  };
  using ::testing::HasSubstr;

  EXPECT_THAT(said({"--eviction=vase-dkv"}), HasSubstr("0 budgets are given"));
  EXPECT_THAT(
      said({"--eviction=random", "--budget-tokens=500", "--budget-ratio=0.5"}),
      HasSubstr("2 budgets are given"));
  EXPECT_THAT(said({"--eviction=tiers", "--per-event-ratio=0.03"}),
              HasSubstr("--cumulative-cap is 0"));
  EXPECT_THAT(said({"--budget-tokens=500"}), HasSubstr("--eviction is none"));
  EXPECT_THAT(said({"--eviction=lru"}), HasSubstr("vase-attn-v"));
  EXPECT_EQ(said({"--eviction=vase-dkv", "--budget-ratio=0.5"}), "");
  EXPECT_THAT(said({"--eviction=snap-kv-prompt", "--budget-tokens=500"}),
              HasSubstr("give --protect-prompt=false"));
  EXPECT_EQ(said({"--eviction=snap-kv-prompt", "--budget-tokens=500",
                  "--protect-prompt=false"}),
            "");
  EXPECT_EQ(said({"--eviction=tiers", "--per-event-ratio=0.03",
                  "--cumulative-cap=0.1"}),
            "");
}

TEST(WorkerFlagsTest, AnEvictionFollowsTheScheduleOfThePlacement) {
  WorkerFlags options;
  Flags flags({"farkv-test", "Tests flags.", "1"});
  options.Register(flags);
  ASSERT_FALSE(
      flags
          .Parse(
              {"--model=x", "--eviction=tiers", "--interval=16", "--sinks=2",
               "--recent=32", "--protect-prompt=false", "--budget-tokens=512"},
              [](const std::string&) -> const char* { return nullptr; })
          .has_value());
  ASSERT_TRUE(options.Finish().ok());

  const DestructionSettings& settings = *options.engine.destruction;
  EXPECT_EQ(settings.budget.kind, BudgetKind::kFixed);
  EXPECT_EQ(settings.budget.tokens, 512);
  EXPECT_FALSE(settings.protect_prompt);
  const auto& tiers = std::get<TiersPolicy>(settings.policy);
  EXPECT_EQ(tiers.interval, 16);
  EXPECT_EQ(tiers.sinks, 2);
  EXPECT_EQ(tiers.recent, 32);
  EXPECT_EQ(settings.recent, 32);
}

}  // namespace
}  // namespace farkv

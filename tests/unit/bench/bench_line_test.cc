#include "bench/bench_line.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv::bench {
namespace {

using ::testing::Not;
using ::testing::StartsWith;

const RunFacts kFacts = {"0123456789ab", "Test CPU"};

BenchLine Compared() {
  BenchLine line;
  line.bench = "matmul";
  line.case_name = "m1-read";
  line.value = 27.26313;
  line.unit = "GB/s";
  line.better = Better::kHigher;
  line.yardstick = {"plain read", 30.0};
  line.ratio = 0.9123456789;
  line.goal = 0.9;
  line.runs = 21;
  line.spread = 1.0 / 32;
  line.params = {{"m", 1}, {"shape", "8x8"}, {"share", 1.0 / 3}};
  line.metrics = {{"bytes", 128}};
  return line;
}

// The whole line, byte for byte: scripts and tables read it.
TEST(BenchLineTest, AComparedCaseIsPrintedInTheAgreedOrder) {
  EXPECT_EQ(ToJson(Compared(), kFacts),
            R"({"bench":"matmul","case":"m1-read","value":27.2631,)"
            R"("unit":"GB/s","better":"higher",)"
            R"("yardstick":{"name":"plain read","value":30.0},)"
            R"("ratio":0.912346,"goal":0.9,"met":true,"runs":21,)"
            R"("spread":0.03125,)"
            R"("params":{"m":1,"shape":"8x8","share":0.333333},)"
            R"("metrics":{"bytes":128},)"
            R"("commit":"0123456789ab","cpu":"Test CPU"})");
}

TEST(BenchLineTest, WhatACaseDoesNotHaveIsNull) {
  BenchLine line;
  line.bench = "decode";
  line.case_name = "full";
  line.value = 12;
  line.unit = "ms";
  line.better = Better::kLower;
  line.runs = 3;

  EXPECT_EQ(ToJson(line, kFacts),
            R"({"bench":"decode","case":"full","value":12.0,"unit":"ms",)"
            R"("better":"lower","yardstick":null,"ratio":null,"goal":null,)"
            R"("met":null,"runs":3,"spread":0.0,"params":{},"metrics":{},)"
            R"("commit":"0123456789ab","cpu":"Test CPU"})");
}

TEST(BenchLineTest, AGoalIsMissedByTheRatioAsMeasuredNotAsPrinted) {
  BenchLine line = Compared();
  line.ratio = 0.89999999;  // prints as 0.9

  const auto json = nlohmann::json::parse(ToJson(line, kFacts));

  EXPECT_EQ(json["ratio"], 0.9);
  EXPECT_EQ(json["met"], false);
}

TEST(BenchLineTest, AValueThatIsNotFiniteBecomesNull) {
  BenchLine line = Compared();
  line.value = std::numeric_limits<double>::infinity();
  line.metrics = {{"rate", std::numeric_limits<double>::quiet_NaN()}};

  const auto json = nlohmann::json::parse(ToJson(line, kFacts));

  EXPECT_TRUE(json["value"].is_null());
  EXPECT_TRUE(json["metrics"]["rate"].is_null());
}

TEST(BenchLineTest, ALineHoldsNoNewline) {
  BenchLine line = Compared();
  line.case_name = "two\nlines";

  EXPECT_EQ(ToJson(line, kFacts).find('\n'), std::string::npos);
}

TEST(CpuModelTest, TheModelNameIsTakenFromTheFirstCpu) {
  EXPECT_EQ(CpuModel("processor\t: 0\nmodel name\t: AMD EPYC 9654\n"
                     "processor\t: 1\nmodel name\t: Other\n"),
            "AMD EPYC 9654");
}

TEST(CpuModelTest, ATextWithoutAModelNameIsUnknown) {
  EXPECT_EQ(CpuModel(""), "unknown");
  EXPECT_EQ(CpuModel("model name"), "unknown");
}

TEST(ThisRunTest, TheCommitOfTheBuildIsNamed) {
  EXPECT_FALSE(ThisRun().commit.empty());
  EXPECT_THAT(ThisRun().commit, Not(StartsWith("-")));
}

}  // namespace
}  // namespace farkv::bench

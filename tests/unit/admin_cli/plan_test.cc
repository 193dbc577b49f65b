// `farkvctl plan`: what it reads, refuses and prints.
#include "admin_cli/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "admin_cli/command_line.h"
#include "admin_cli/plan_model.h"
#include "admin_cli/rates.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConfig[] = R"({"model_type": "qwen3", "num_hidden_layers": 36,
  "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 2560,
  "intermediate_size": 9728, "vocab_size": 151936})";

TEST(RatesTest, BitsAndBytesAreToldApart) {
  EXPECT_EQ(*ParseByteRate("200Gb"), 25e9);
  EXPECT_EQ(*ParseByteRate("200Gb/s"), 25e9);
  EXPECT_EQ(*ParseByteRate("10Gbit"), 1.25e9);
  EXPECT_EQ(*ParseByteRate("100Mbit/s"), 12.5e6);
  EXPECT_EQ(*ParseByteRate("300GB/s"), 300e9);
  EXPECT_EQ(*ParseByteRate("1.5TB/s"), 1.5e12);
  EXPECT_EQ(*ParseByteRate("1MiB/s"), 1048576);
  EXPECT_EQ(*ParseFlops("400TFLOPS"), 4e14);
}

TEST(RatesTest, WhatIsNoRateIsRefusedWithAnExample) {
  for (const char* bad : {"", "200", "Gb", "-1Gb", "1e9Gb", "200 Gb", "200gb",
                          "1.2.3Gb", "200Gb/s/s", "nanGb"}) {
    EXPECT_THAT(std::string(ParseByteRate(bad).status().message()),
                HasSubstr("200Gb or 300GB/s"))
        << bad;
  }
  for (const char* bad : {"0Gb", "1kb", "9999999999TB/s"}) {
    EXPECT_THAT(std::string(ParseByteRate(bad).status().message()),
                HasSubstr("must lie in [1e3, 1e18]"))
        << bad;
  }
  EXPECT_FALSE(ParseFlops("400T").ok());
}

TEST(RatesTest, BytesAreShownInThreeDigits) {
  EXPECT_EQ(ShownBytes(0), "0B");
  EXPECT_EQ(ShownBytes(999), "999B");
  EXPECT_EQ(ShownBytes(147456), "144KiB");
  EXPECT_EQ(ShownBytes(1.5e9), "1.4GiB");
}

TEST(PlanModelTest, WhatIsNotSaidFollowsFromTheRest) {
  const auto qwen3 = ParseModelShape(kConfig);
  ASSERT_TRUE(qwen3.ok()) << qwen3.status();
  EXPECT_EQ(qwen3->head_dim, 128);

  const auto llama = ParseModelShape(
      R"({"num_hidden_layers": 32, "num_attention_heads": 32,
          "hidden_size": 4096, "intermediate_size": 11008,
          "vocab_size": 32000, "head_dim": null})");
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->num_kv_heads, 32);
  EXPECT_EQ(llama->head_dim, 128);
}

TEST(PlanModelTest, AFieldThatIsWrongIsNamed) {
  const auto refusal = [](const std::string& text) {
    return std::string(ParseModelShape(text).status().message());
  };
  EXPECT_THAT(refusal("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("num_hidden_layers is missing"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": -3})"),
              HasSubstr("num_hidden_layers is '-3', must be a whole number"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": 1e99})"), HasSubstr("1e+99"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": "4"})"),
              HasSubstr("must be a whole number"));
}

class PlanCommandTest : public ::testing::Test {
 protected:
  PlanCommandTest()
      : model_(::testing::TempDir() + "/plan_test_" + std::to_string(getpid()) +
               ".json") {
    std::ofstream(model_) << kConfig;
  }
  ~PlanCommandTest() override { unlink(model_.c_str()); }

  absl::Status Parse(const std::string& flags) {
    v_ = Invocation();
    app_ = std::make_unique<CLI::App>("", "farkvctl");
    AddCommands(*app_, v_);
    try {
      app_->parse("plan --model " + model_ + " --tokens 16384 " + flags);
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    return FinishInvocation(v_);
  }
  std::string Refusal(const std::string& flags) {
    const absl::Status status = Parse(flags);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << flags << ": " << status;
    return std::string(status.message());
  }
  std::string Printed(const std::string& format) {
    const auto result = MakePlan(v_.plan);
    EXPECT_TRUE(result.ok()) << result.status();
    OutputOptions output = v_.options.output;
    output.format = format;
    std::ostringstream out;
    PrintPlan(v_.plan, *result, output, out);
    return out.str();
  }

  const std::string model_;
  Invocation v_;
  std::unique_ptr<CLI::App> app_;
};

TEST_F(PlanCommandTest, FlagsBecomeAWorkloadAndRates) {
  ASSERT_TRUE(Parse("--batch 32 --hbm 40GiB --link 200Gb --ddr 300GB/s "
                    "--nodes 2 --t2-ratio 0.5 --t2-bits 4 --rtt 30us "
                    "--weights-dtype q8_0")
                  .ok());

  const PlanOptions& plan = v_.plan;
  EXPECT_EQ(plan.workload.batch, 32);
  EXPECT_EQ(plan.workload.t0_bytes, uint64_t{40} << 30);
  EXPECT_EQ(plan.workload.nodes, 2);
  EXPECT_EQ(plan.workload.t2_ratio, 5000);
  EXPECT_EQ(plan.workload.t2_bits, 4);
  EXPECT_EQ(plan.rates.link_bytes_per_second, 25e9);
  EXPECT_EQ(plan.rates.node_bytes_per_second, 300e9);
  EXPECT_EQ(plan.rates.round_trip, absl::Microseconds(30));
  // 4,022,272,000 weights, 34 bytes for 32 of them.
  EXPECT_EQ(plan.rates.weight_bytes, uint64_t{4'022'272'000} / 32 * 34);
}

TEST_F(PlanCommandTest, BadInputNamesFlagValueAndRange) {
  EXPECT_THAT(Refusal("--batch 0"),
              HasSubstr("--batch is 0, must lie in [1, 65536]"));
  EXPECT_THAT(Refusal("--batch x"),
              AllOf(HasSubstr("--batch"), HasSubstr("x")));
  EXPECT_THAT(Refusal("--prompt-tokens 20000"),
              HasSubstr("--prompt-tokens is 20000, must lie in [1, 16384]"));
  EXPECT_THAT(Refusal("--t2-bits 6"),
              HasSubstr("--t2-bits is 6, must be 8 or 4"));
  EXPECT_THAT(Refusal("--hbm-ratio 1.5"),
              AllOf(HasSubstr("--hbm-ratio: "), HasSubstr("1.5")));
  EXPECT_THAT(Refusal("--hbm 40"),
              AllOf(HasSubstr("--hbm: "), HasSubstr("40")));
  EXPECT_THAT(Refusal("--hbm 0B"), HasSubstr("--hbm: is 0"));
  EXPECT_THAT(Refusal("--hbm 64MiB --hbm-ratio 0.3"),
              AllOf(HasSubstr("--hbm: "), HasSubstr("64MiB")));
  EXPECT_THAT(Refusal("--link 200"),
              AllOf(HasSubstr("--link: "), HasSubstr("200Gb or 300GB/s")));
  EXPECT_THAT(Refusal("--rtt 2m"), HasSubstr("--rtt: 2m is above 60s"));
  EXPECT_THAT(Refusal("--nodes 0"), HasSubstr("--nodes is 0"));
  EXPECT_THAT(Refusal("--granularity 32"), HasSubstr("--granularity is 32"));
  EXPECT_THAT(Refusal("--device tpu"), HasSubstr("tpu"));
  EXPECT_THAT(Refusal("--sort-by colour"), HasSubstr("tokensPerSecond"));
}

TEST_F(PlanCommandTest, AModelThatCannotBeReadIsAnErrorWithItsPath) {
  std::ofstream(model_) << "{}";
  EXPECT_THAT(Refusal(""), AllOf(HasSubstr("--model: "), HasSubstr(model_),
                                 HasSubstr("num_hidden_layers")));
  unlink(model_.c_str());
  const absl::Status missing = Parse("");
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(model_));
}

TEST_F(PlanCommandTest, EveryModeAndEveryAssumptionIsShown) {
  ASSERT_TRUE(Parse("--batch 4 --hbm-ratio 0.3 --exactness rounding").ok());

  const std::string table = Printed("table");
  EXPECT_THAT(table, AllOf(HasSubstr("full cache "), HasSubstr("prefetch "),
                           HasSubstr("144KiB"), HasSubstr("auto: pushdown"),
                           HasSubstr("--ddr=200GB/s")));
  EXPECT_THAT(table, Not(HasSubstr("--hbm-ratio=")));
  EXPECT_EQ(Printed("name"),
            "mode/full cache\nmode/map\nmode/prefetch\n"
            "mode/pushdown\n");
}

TEST_F(PlanCommandTest, ADocumentHasNumbersOnly) {
  ASSERT_TRUE(Parse("--hbm-ratio 0.3 --prompt-tokens 1024").ok());

  const auto document = nlohmann::json::parse(Printed("json"));

  EXPECT_EQ(document["apiVersion"], "farkv/v1");
  EXPECT_EQ(document["kind"], "Plan");
  EXPECT_EQ(document["tiers"]["t0Tokens"], 5760);
  EXPECT_EQ(document["items"][2]["linkBytes"], 1578811392);
  EXPECT_TRUE(document["items"][2]["stepSeconds"].is_number());
  EXPECT_EQ(document["settings"]["hbm-ratio"]["assumed"], false);
  EXPECT_EQ(document["settings"]["rtt"]["value"], "20us");
  EXPECT_EQ(document["auto"]["mode"], "prefetch");  // bitwise, by default
}

}  // namespace
}  // namespace farkv

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gpu_worker/model/half.h"
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelFilesTest : public ::testing::Test {
 protected:
  ~ModelFilesTest() override { std::remove(path_.c_str()); }

  std::string Write(const nlohmann::json& json) {
    std::ofstream(path_) << json.dump();
    return path_;
  }

  static nlohmann::json Config() {
    return {{"architectures", {"LlamaForCausalLM"}},
            {"hidden_size", 64},
            {"intermediate_size", 96},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"vocab_size", 50},
            {"max_position_embeddings", 128},
            {"eos_token_id", {1, 2}}};
  }

  std::string Refusal(nlohmann::json config) {
    return std::string(ModelConfig::Load(Write(config)).status().message());
  }

  const std::string path_ = absl::StrCat(
      ::testing::TempDir(), "farkv-",
      ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".json");
};

TEST_F(ModelFilesTest, ALlamaConfigIsRead) {
  const auto config = ModelConfig::Load(Write(Config()));

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_FALSE(config->qk_norm);
  EXPECT_THAT(config->eos_tokens, ElementsAre(1, 2));
  EXPECT_EQ(config->bos_token, -1);
}

TEST_F(ModelFilesTest, AConfigThatDoesNotFitIsRefusedByField) {
  auto config = Config();
  config["architectures"] = {"MambaForCausalLM"};
  EXPECT_THAT(Refusal(config), HasSubstr("MambaForCausalLM"));
  config = Config();
  config.erase("hidden_size");
  EXPECT_THAT(Refusal(config), HasSubstr("hidden_size"));
  config = Config();
  config["num_hidden_layers"] = -3;
  EXPECT_THAT(Refusal(config),
              AllOf(HasSubstr("num_hidden_layers"), HasSubstr("-3")));
  config = Config();
  config["num_key_value_heads"] = 3;
  EXPECT_THAT(Refusal(config), HasSubstr("multiple"));
  config = Config();
  config["rope_scaling"] = {{"type", "yarn"}};
  EXPECT_THAT(Refusal(config), HasSubstr("yarn"));
  config = Config();
  config["attention_bias"] = true;
  EXPECT_THAT(Refusal(config), HasSubstr("attention_bias"));
  EXPECT_EQ(ModelConfig::Load("/nonexistent.json").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ModelFilesTest, ATokenizerEncodesSpecialTokensWhole) {
  const auto tokenizer = Tokenizer::Load(
      Write({{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"<", 1}}}}},
             {"added_tokens",
              {{{"id", 2}, {"content", "<eos>"}, {"special", true}}}}}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_THAT(*tokenizer->Encode("a<<eos>a"), ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(tokenizer->Decode(1), "<");
  EXPECT_EQ(tokenizer->Decode(2), "");
  EXPECT_EQ(tokenizer->Decode(77), "");
  EXPECT_EQ(tokenizer->Decode(-1), "");
}

TEST_F(ModelFilesTest, ACharacterWithoutATokenIsNamedWithItsPlace) {
  const auto tokenizer =
      Tokenizer::Load(Write({{"model", {{"vocab", {{"a", 0}}}}}}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  EXPECT_THAT(std::string(tokenizer->Encode("aa?").status().message()),
              AllOf(HasSubstr("?"), HasSubstr("byte 2")));
}

TEST_F(ModelFilesTest, ATokenizerThatDoesNotFitIsRefused) {
  EXPECT_FALSE(Tokenizer::Load("/nonexistent.json").ok());
  EXPECT_FALSE(Tokenizer::Load(Write({1, 2})).ok());
  EXPECT_FALSE(Tokenizer::Load(Write({{"model", {{"vocab", 3}}}})).ok());
  EXPECT_FALSE(
      Tokenizer::Load(Write({{"model", {{"vocab", {{"a", "x"}}}}}})).ok());
  EXPECT_FALSE(
      Tokenizer::Load(Write({{"model", {{"vocab", {{"a", -1}}}}}})).ok());
  EXPECT_EQ(
      Tokenizer::Load(
          Write({{"model", {{"vocab", {{"a", 0}}}, {"merges", {"a a"}}}}}))
          .status()
          .code(),
      absl::StatusCode::kUnimplemented);
}

TEST(HalfTest, EveryHalfEqualsItsDefinition) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31);
    const double fraction = (bits & 1023) / 1024.0;
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0.0) << bits;
      EXPECT_EQ(std::isinf(value), fraction == 0.0) << bits;
    } else {
      const double expected = exponent == 0
                                  ? std::ldexp(fraction, -14)
                                  : std::ldexp(1.0 + fraction, exponent - 15);
      EXPECT_EQ(static_cast<double>(value), sign * expected) << bits;
    }
  }
}

}  // namespace
}  // namespace farkv

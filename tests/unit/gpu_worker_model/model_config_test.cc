#include "gpu_worker/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RopeScaling::Kind;

class ModelConfigTest : public ::testing::Test {
 protected:
  ~ModelConfigTest() override { std::remove(path_.c_str()); }

  static json Llama() {
    return {{"architectures", {"LlamaForCausalLM"}},
            {"model_type", "llama"},
            {"hidden_size", 64},
            {"intermediate_size", 96},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"vocab_size", 50},
            {"max_position_embeddings", 4096},
            {"eos_token_id", {1, 2}}};
  }
  static json Of(const char* architecture, const char* model_type) {
    json config = Llama();
    config["architectures"] = {architecture};
    config["model_type"] = model_type;
    return config;
  }
  static json Mistral() { return Of("MistralForCausalLM", "mistral"); }
  static json Qwen2() { return Of("Qwen2ForCausalLM", "qwen2"); }
  static json Qwen3() { return Of("Qwen3ForCausalLM", "qwen3"); }

  absl::StatusOr<ModelConfig> Load(const json& config) {
    std::ofstream(path_) << config.dump();
    return ModelConfig::Load(path_);
  }
  // A config with the `changes`, which must be good.
  ModelConfig Read(json config, const json& changes = {}) {
    if (!changes.is_null()) config.update(changes);
    const auto read = Load(config);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.value_or(ModelConfig());
  }
  std::string Refusal(json config, const json& changes) {
    config.update(changes);
    return std::string(Load(config).status().message());
  }
  // A Llama config with this rope_scaling.
  std::string RopeRefusal(const json& scaling) {
    return Refusal(Llama(), {{"rope_scaling", scaling}});
  }

  const std::string path_ = absl::StrCat(
      ::testing::TempDir(), "farkv-config-", getpid(), "-",
      ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".json");
};

TEST_F(ModelConfigTest, ALlamaConfigIsRead) {
  const ModelConfig config = Read(Llama());

  EXPECT_EQ(config.head_dim, 16);
  EXPECT_FALSE(config.qk_norm);
  EXPECT_FALSE(config.qkv_bias || config.output_bias || config.mlp_bias);
  EXPECT_THAT(config.eos_tokens, ElementsAre(1, 2));
  EXPECT_EQ(config.bos_token, -1);
  EXPECT_EQ(config.max_position, 4096);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_EQ(config.rope_scaling, RopeScaling());
}

TEST_F(ModelConfigTest, AConfigThatDoesNotFitIsRefusedByField) {
  json without = Llama();
  without.erase("hidden_size");
  EXPECT_THAT(Refusal(without, json::object()), HasSubstr("hidden_size"));
  EXPECT_THAT(Refusal(Llama(), {{"architectures", {"MambaForCausalLM"}}}),
              HasSubstr("MambaForCausalLM"));
  EXPECT_THAT(Refusal(Llama(), {{"num_hidden_layers", -3}}),
              AllOf(HasSubstr("num_hidden_layers"), HasSubstr("-3")));
  EXPECT_THAT(Refusal(Llama(), {{"num_key_value_heads", 3}}),
              HasSubstr("multiple"));
  EXPECT_THAT(Refusal(Llama(), {{"tie_word_embeddings", "yes"}}),
              AllOf(HasSubstr("tie_word_embeddings"), HasSubstr("yes")));
  EXPECT_THAT(Refusal(Llama(), {{"rope_theta", 1}}), HasSubstr("rope_theta"));
  EXPECT_EQ(ModelConfig::Load("/nonexistent.json").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ModelConfigTest, WhatWouldChangeTheArithmeticIsRefusedByName) {
  EXPECT_THAT(Refusal(Llama(), {{"hidden_act", "gelu"}}), HasSubstr("gelu"));
  EXPECT_THAT(
      Refusal(Llama(), {{"quantization_config", {{"quant_method", "gptq"}}}}),
      HasSubstr("gptq"));
  EXPECT_THAT(Refusal(Llama(), {{"partial_rotary_factor", 0.5}}),
              HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(Refusal(Qwen3(), {{"layer_types", {"linear_attention"}}}),
              HasSubstr("linear_attention"));
}

TEST_F(ModelConfigTest, ModelTypeMustAgreeWithTheArchitecture) {
  EXPECT_THAT(Refusal(Llama(), {{"model_type", "qwen2"}}),
              AllOf(HasSubstr("qwen2"), HasSubstr("LlamaForCausalLM")));
}

TEST_F(ModelConfigTest, TokensAreIdsOfTheVocabulary) {
  EXPECT_EQ(Read(Llama(), {{"bos_token_id", 3}}).bos_token, 3);
  EXPECT_THAT(Read(Llama(), {{"eos_token_id", 7}}).eos_tokens, ElementsAre(7));
  EXPECT_EQ(Read(Llama(), {{"bos_token_id", nullptr}}).bos_token, -1);
  EXPECT_THAT(Refusal(Llama(), {{"bos_token_id", 50}}),
              AllOf(HasSubstr("bos_token_id"), HasSubstr("50")));
  EXPECT_THAT(Refusal(Llama(), {{"eos_token_id", 4294967298}}),
              AllOf(HasSubstr("eos_token_id"), HasSubstr("4294967298")));
  EXPECT_THAT(Refusal(Llama(), {{"eos_token_id", {1, "</s>"}}}),
              AllOf(HasSubstr("eos_token_id"), HasSubstr("</s>")));
  EXPECT_THAT(Refusal(Llama(), {{"eos_token_id", -1}}),
              HasSubstr("eos_token_id"));
}

TEST_F(ModelConfigTest, GenerationConfigAddsEndTokens) {
  ModelConfig config = Read(Llama(), {{"eos_token_id", 7}});

  EXPECT_TRUE(config.AddGenerationConfig(R"({"eos_token_id": [9, 7]})").ok());
  EXPECT_TRUE(config.AddGenerationConfig(R"({"do_sample": true})").ok());

  EXPECT_THAT(config.eos_tokens, ElementsAre(7, 9));
  EXPECT_THAT(
      std::string(
          config.AddGenerationConfig(R"({"eos_token_id": 50})").message()),
      HasSubstr("50"));
  EXPECT_FALSE(config.AddGenerationConfig("[]").ok());
}

TEST_F(ModelConfigTest, BiasesAreThoseOfTheArchitecture) {
  ModelConfig config = Read(Qwen2());
  EXPECT_TRUE(config.qkv_bias);
  EXPECT_FALSE(config.output_bias || config.mlp_bias);
  config = Read(Qwen3(), {{"attention_bias", true}});
  EXPECT_TRUE(config.qkv_bias && config.output_bias);
  config = Read(Llama(), {{"attention_bias", true}, {"mlp_bias", true}});
  EXPECT_TRUE(config.qkv_bias && config.output_bias && config.mlp_bias);
  EXPECT_THAT(Refusal(Mistral(), {{"attention_bias", true}}),
              AllOf(HasSubstr("attention_bias"), HasSubstr("Mistral")));
  EXPECT_THAT(Refusal(Qwen2(), {{"mlp_bias", true}}), HasSubstr("mlp_bias"));
}

TEST_F(ModelConfigTest, Qwen3HasQkNormAndItsOwnHeadSize) {
  EXPECT_TRUE(Read(Qwen3()).qk_norm);
  EXPECT_EQ(Read(Qwen3()).head_dim, 128);
  EXPECT_EQ(Read(Qwen3(), {{"head_dim", 64}}).head_dim, 64);
}

TEST_F(ModelConfigTest, ASlidingWindowBoundsTheSequence) {
  EXPECT_EQ(Read(Mistral(), {{"sliding_window", 512}}).max_position, 512);
  EXPECT_EQ(Read(Mistral(), {{"sliding_window", 512}}).sliding_window, 512);
  EXPECT_EQ(Read(Mistral(), {{"sliding_window", nullptr},
                             {"max_position_embeddings", 8192}})
                .max_position,
            8192);
  // The default of the reference implementation.
  EXPECT_EQ(Read(Mistral(), {{"max_position_embeddings", 8192}}).max_position,
            4096);
}

TEST_F(ModelConfigTest, QwensWindowCountsOnlyWhereLayersHaveIt) {
  json window = {{"sliding_window", 512}, {"max_window_layers", 1}};
  EXPECT_EQ(Read(Qwen2(), window).max_position, 4096);
  window["use_sliding_window"] = true;
  EXPECT_EQ(Read(Qwen2(), window).max_position, 512);
  window["max_window_layers"] = 2;
  EXPECT_EQ(Read(Qwen2(), window).max_position, 4096);
  window["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(Read(Qwen2(), window).max_position, 512);
}

TEST_F(ModelConfigTest, RopeScalingIsReadInEverySpelling) {
  for (const char* type : {"type", "rope_type"}) {
    for (const char* object : {"rope_scaling", "rope_parameters"}) {
      const ModelConfig config =
          Read(Llama(), {{object, {{type, "linear"}, {"factor", 2.5}}}});
      EXPECT_EQ(config.rope_scaling.kind, Kind::kLinear) << type << object;
      EXPECT_EQ(config.rope_scaling.factor, 2.5);
      EXPECT_EQ(config.max_position, 10240);
    }
  }
  const json theta = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  const ModelConfig plain = Read(Llama(), {{"rope_parameters", theta}});
  EXPECT_EQ(plain.rope_scaling.kind, Kind::kNone);
  EXPECT_EQ(plain.rope_theta, 5e5);
}

TEST_F(ModelConfigTest, YarnDerivesWhatTheFileLeavesOut) {
  json scaling = {{"type", "yarn"},
                  {"factor", 4.0},
                  {"original_max_position_embeddings", 2048}};
  ModelConfig config = Read(Llama(), {{"rope_scaling", scaling}});
  EXPECT_EQ(config.rope_scaling.beta_fast, 32.0);
  EXPECT_EQ(config.rope_scaling.beta_slow, 1.0);
  EXPECT_NEAR(config.rope_scaling.attention_factor, 0.1 * std::log(4.0) + 1.0,
              1e-12);
  EXPECT_EQ(config.max_position, 8192);
  scaling.erase("factor");
  config = Read(Llama(), {{"rope_scaling", scaling}});
  EXPECT_EQ(config.rope_scaling.factor, 2.0);
  EXPECT_EQ(config.max_position, 4096);
  scaling.erase("original_max_position_embeddings");
  config = Read(Llama(), {{"rope_scaling", scaling}});
  EXPECT_EQ(config.rope_scaling.original_max_position, 4096);
}

TEST_F(ModelConfigTest, Llama3ScalingIsRead) {
  const ModelConfig config =
      Read(Llama(), {{"max_position_embeddings", 131072},
                     {"rope_scaling",
                      {{"rope_type", "llama3"},
                       {"factor", 32.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}}}});

  EXPECT_EQ(config.rope_scaling.kind, Kind::kLlama3);
  EXPECT_EQ(config.rope_scaling.original_max_position, 8192);
  EXPECT_EQ(config.max_position, 131072);
}

TEST_F(ModelConfigTest, RopeScalingThatDoesNotFitIsRefusedByField) {
  EXPECT_THAT(RopeRefusal({{"type", "longrope"}}), HasSubstr("longrope"));
  EXPECT_THAT(RopeRefusal({{"type", "linear"}}), HasSubstr("factor"));
  EXPECT_THAT(RopeRefusal({{"type", "linear"}, {"factor", 0.5}}),
              AllOf(HasSubstr("factor"), HasSubstr("0.5")));
  EXPECT_THAT(RopeRefusal({{"type", "linear"}, {"factor", "two"}}),
              AllOf(HasSubstr("factor"), HasSubstr("two")));
  EXPECT_THAT(RopeRefusal({{"type", "dynamic"}, {"factor", 2}, {"alpha", 3}}),
              AllOf(HasSubstr("alpha"), HasSubstr("3")));
  EXPECT_THAT(RopeRefusal({{"type", "dynamic"},
                           {"factor", 2},
                           {"original_max_position_embeddings", 64}}),
              AllOf(HasSubstr("64"), HasSubstr("4096")));
  EXPECT_THAT(RopeRefusal({{"type", "yarn"},
                           {"factor", 2},
                           {"beta_fast", 1},
                           {"beta_slow", 3}}),
              AllOf(HasSubstr("beta_fast"), HasSubstr("3")));
  EXPECT_THAT(RopeRefusal({{"type", "llama3"},
                           {"factor", 2},
                           {"low_freq_factor", 4},
                           {"high_freq_factor", 4}}),
              HasSubstr("high_freq_factor"));
  EXPECT_THAT(RopeRefusal(json::array()), HasSubstr("rope_scaling"));
}

TEST(RopeScalingTest, DivisorsDivideEachFrequency) {
  RopeScaling scaling;
  scaling.divisors = {1, 2, 4, 8, 1, 1, 1, 1};
  ASSERT_TRUE(scaling.Validate(16).ok());
  const auto plain = RopeFrequencies(10000.0, 16, {}, 0);

  const auto divided = RopeFrequencies(10000.0, 16, scaling, 0);

  EXPECT_EQ(divided[0], plain[0]);
  EXPECT_EQ(divided[3], plain[3] / 8);
  EXPECT_FALSE(scaling.Validate(32).ok());
  scaling.divisors[2] = 0;
  EXPECT_FALSE(scaling.Validate(16).ok());
}

}  // namespace
}  // namespace farkv

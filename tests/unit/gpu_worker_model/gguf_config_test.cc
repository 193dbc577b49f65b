#include "gpu_worker/model/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/testing/gguf_writer.h"

namespace farkv {
namespace {

using ::farkv::testing::GgufWriter;
using ::farkv::testing::RawBytes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kF16 = 1;

class GgufConfigTest : public ::testing::Test {
 protected:
  GgufConfigTest() { Describe("llama"); }

  // A model of 4 heads of 16, all other keys left out.
  void Describe(const std::string& name) {
    writer_ = GgufWriter();
    prefix_ = name + ".";
    writer_.Add("general.architecture", name);
    Add("context_length", uint32_t{128});
    Add("embedding_length", uint32_t{64});
    Add("block_count", uint32_t{2});
    Add("feed_forward_length", uint32_t{96});
    Add("attention.head_count", uint32_t{4});
    Add("attention.head_count_kv", uint32_t{2});
    Add("attention.layer_norm_rms_epsilon", 1e-5f);
    AddMatrix("token_embd.weight", 50);
  }

  template <typename T>
  void Add(const std::string& key, T value) {
    writer_.Add(prefix_ + key, value);
  }
  void AddMatrix(const std::string& name, int64_t rows) {
    writer_.AddTensor(name, {rows, 64}, kF32,
                      std::string(static_cast<size_t>(rows) * 256, '\0'));
  }

  absl::StatusOr<ModelConfig> Read() {
    bytes_ = writer_.Bytes();
    file_ = GgufFile::Parse(std::as_bytes(std::span(bytes_)), "x.gguf");
    if (!file_.ok()) return file_.status();
    return ReadGgufConfig(**file_);
  }
  std::string Refusal() {
    const auto config = Read();
    EXPECT_FALSE(config.ok());
    return std::string(config.status().message());
  }

  GgufWriter writer_;
  std::string prefix_;
  std::string bytes_;
  absl::StatusOr<std::unique_ptr<GgufFile>> file_;
};

TEST_F(GgufConfigTest, ALlamaIsReadWithItsDefaults) {
  const auto config = Read();

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "LlamaForCausalLM");
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->intermediate_size, 96);
  EXPECT_EQ(config->num_layers, 2);
  EXPECT_EQ(config->num_query_heads, 4);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->vocab_size, 50);
  EXPECT_EQ(config->max_position, 128);
  EXPECT_EQ(config->rms_norm_epsilon, 1e-5f);
  EXPECT_EQ(config->rope_theta, 10000.0);
  EXPECT_EQ(config->rope_scaling, RopeScaling{});
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_FALSE(config->qk_norm);
  EXPECT_FALSE(config->qkv_bias);
  EXPECT_EQ(config->bos_token, -1);
  EXPECT_THAT(config->eos_tokens, IsEmpty());
}

TEST_F(GgufConfigTest, GivenValuesReplaceTheDefaults) {
  Add("rope.freq_base", 500000.0f);
  Add("attention.key_length", uint32_t{32});
  Add("attention.value_length", uint32_t{32});
  Add("rope.dimension_count", uint32_t{32});
  Add("attention.sliding_window", uint32_t{100});
  AddMatrix("output.weight", 50);
  AddMatrix("blk.0.attn_q.bias", 1);

  const auto config = Read();

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_theta, 500000.0);
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->sliding_window, 100);
  EXPECT_EQ(config->max_position, 100);
  EXPECT_FALSE(config->tied_embeddings);
  EXPECT_TRUE(config->qkv_bias);
  EXPECT_FALSE(config->output_bias);
}

TEST_F(GgufConfigTest, QwenHasItsBiasesAndNorms) {
  Describe("qwen2");
  const auto second = Read();
  Describe("qwen3");
  const auto third = Read();

  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(second->architecture, "Qwen2ForCausalLM");
  EXPECT_TRUE(second->qkv_bias);
  EXPECT_FALSE(second->qk_norm);
  EXPECT_EQ(third->architecture, "Qwen3ForCausalLM");
  EXPECT_FALSE(third->qkv_bias);
  EXPECT_TRUE(third->qk_norm);
}

TEST_F(GgufConfigTest, RopeIsScaledLinearly) {
  Add("rope.scaling.type", "linear");
  Add("rope.scaling.factor", 4.0f);
  const auto config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(config->rope_scaling.factor, 4.0);
  EXPECT_EQ(config->max_position, 512);

  Describe("llama");
  Add("rope.scale_linear", 2.0f);
  const auto old = Read();
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(old->rope_scaling.factor, 2.0);
}

TEST_F(GgufConfigTest, AFactorWithoutAKindIsLinear) {
  Add("rope.scaling.factor", 4.0f);
  const auto config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(config->rope_scaling.factor, 4.0);
  EXPECT_EQ(config->max_position, 512);

  // What says that there is none has no factor.
  Describe("llama");
  Add("rope.scaling.type", "none");
  Add("rope.scaling.factor", 4.0f);
  const auto none = Read();
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_EQ(none->max_position, 128);

  Describe("llama");
  Add("rope.scaling.factor", 1.0f);
  const auto one = Read();
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->rope_scaling.kind, RopeScaling::Kind::kNone);
}

TEST_F(GgufConfigTest, RopeIsScaledByYarn) {
  Add("rope.scaling.type", "yarn");
  Add("rope.scaling.factor", 4.0f);
  Add("rope.scaling.original_context_length", uint32_t{64});
  Add("rope.scaling.attn_factor", 0.5f);

  const auto config = Read();

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(config->rope_scaling.original_max_position, 64);
  EXPECT_DOUBLE_EQ(config->rope_scaling.attention_factor,
                   0.5 * (0.1 * std::log(4.0) + 1.0));
  EXPECT_EQ(config->max_position, 256);
}

TEST_F(GgufConfigTest, DivisorsOfTheFrequenciesComeFromTheirTensor) {
  std::string divisors;
  for (int i = 0; i < 8; ++i) divisors += RawBytes(static_cast<float>(1 + i));
  writer_.AddTensor("rope_freqs.weight", {8}, kF32, divisors);

  const auto config = Read();

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->rope_scaling.divisors,
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(GgufConfigTest, DivisorsOfAnotherShapeOrTypeAreRefused) {
  writer_.AddTensor("rope_freqs.weight", {7}, kF32, std::string(28, 'x'));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("rope_freqs"), HasSubstr("[8]")));

  Describe("llama");
  writer_.AddTensor("rope_freqs.weight", {8}, kF16, std::string(16, 'x'));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("rope_freqs"), HasSubstr("F16")));

  Describe("llama");
  writer_.AddTensor("rope_freqs.weight", {8}, kF32, std::string(32, '\0'));
  EXPECT_THAT(Refusal(), HasSubstr("divisor"));
}

TEST_F(GgufConfigTest, EveryEndTokenCountsOnceAndBosOnlyWhereItIsAdded) {
  writer_.Add("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer_.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
  writer_.Add("tokenizer.ggml.eot_token_id", uint32_t{2});
  writer_.Add("tokenizer.ggml.eom_token_id", uint32_t{7});
  auto config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->eos_tokens, ElementsAre(2, 7));
  EXPECT_EQ(config->bos_token, -1);

  writer_.Add("tokenizer.ggml.add_bos_token", true);
  config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->bos_token, 1);
}

TEST_F(GgufConfigTest, MissingAndWrongKeysAreNamedWithTheirValues) {
  writer_ = GgufWriter();
  EXPECT_THAT(Refusal(), HasSubstr("general.architecture"));
  writer_.Add("general.architecture", "mamba");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("mamba"), HasSubstr("qwen3")));

  writer_ = GgufWriter();
  writer_.Add("general.architecture", "llama");
  EXPECT_THAT(Refusal(), HasSubstr("llama.embedding_length"));

  Describe("llama");
  Add("rope.dimension_count", uint32_t{8});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("llama.rope.dimension_count is 8"),
                               HasSubstr("16")));
  Describe("llama");
  Add("rope.freq_base", 0.0f);
  EXPECT_THAT(Refusal(), HasSubstr("llama.rope.freq_base"));
  Describe("llama");
  writer_.Add("tokenizer.ggml.eos_token_id", uint32_t{50});
  EXPECT_THAT(Refusal(), HasSubstr("eos_token_id is 50"));
}

TEST_F(GgufConfigTest, OtherArithmeticIsRefusedByName) {
  Add("expert_count", uint32_t{8});
  EXPECT_THAT(Refusal(), HasSubstr("8 experts"));
  Describe("llama");
  Add("logit_scale", 0.5f);
  EXPECT_THAT(Refusal(), HasSubstr("llama.logit_scale"));
  Describe("llama");
  Add("rope.scaling.yarn_ext_factor", 0.5f);
  EXPECT_THAT(Refusal(), HasSubstr("llama.rope.scaling.yarn_ext_factor"));
  Describe("llama");
  Add("rope.scaling.type", "longrope");
  EXPECT_THAT(Refusal(), HasSubstr("longrope"));
  Describe("llama");
  AddMatrix("rope_factors_long.weight", 1);
  EXPECT_THAT(Refusal(), HasSubstr("rope_factors_long"));
}

TEST_F(GgufConfigTest, AFileWithoutAnEmbeddingMatrixIsRefused) {
  writer_ = GgufWriter();
  Describe("llama");
  GgufWriter without;
  without.Add("general.architecture", "llama");
  for (const char* key : {"context_length", "embedding_length", "block_count",
                          "feed_forward_length"}) {
    without.Add(std::string("llama.") + key, uint32_t{64});
  }
  without.Add("llama.attention.head_count", uint32_t{4});
  without.Add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer_ = without;
  EXPECT_THAT(Refusal(), HasSubstr("token_embd.weight"));
}

}  // namespace
}  // namespace farkv

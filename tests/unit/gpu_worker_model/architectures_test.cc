// Every architecture against logits of the reference implementation on small
// checkpoints, whose config.json and weights are read as users' are.
#include <gmock/gmock.h>

#include <cstring>

#include "bench/engine_run.h"
#include "golden_logits.h"
#include "golden_models.h"
#include "gpu_worker/model/model_config.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

const bench::RunSettings kKeepLogits = {.keep_logits = true};

EngineOptions Options(const GoldenModel& model, DType kv_dtype) {
  EngineOptions options;
  options.model = model.path();
  options.kv_dtype = kv_dtype;
  options.prefill_chunk = 512;
  options.tiering.t0_bytes = uint64_t{16} << 20;
  return options;
}

// One token of prompt, the others one by one.
GenerationRequest Decode(const nlohmann::json& golden) {
  const auto tokens = golden["tokens"].get<std::vector<int32_t>>();
  GenerationRequest request;
  request.prompt = {tokens.front()};
  request.forced.assign(tokens.begin() + 1, tokens.end());
  request.max_new_tokens = static_cast<int64_t>(tokens.size());
  request.ignore_eos = true;
  return request;
}

class ArchitecturesTest : public testing::TestWithParam<std::string> {
 protected:
  // Logits behind golden position p are at logits[p].
  void ExpectGolden(const std::vector<const float*>& logits) {
    const bool rounded = model_.golden["config"]["torch_dtype"] == "bfloat16";
    for (size_t p = 0; p < logits.size(); ++p) {
      const auto expected =
          model_.golden["logits"][p].get<std::vector<float>>();
      EXPECT_LT(Apart(logits[p], expected), rounded ? 2e-2 : 1e-4)
          << "position " << model_.golden["positions"][p];
    }
  }

  GoldenModel model_{GetParam()};
};

TEST_P(ArchitecturesTest, PrefillAgreesWithTheReference) {
  const auto runs = bench::RunRequests(Options(model_, DType::kF32),
                                       Prefills(model_.golden), kKeepLogits);

  ASSERT_TRUE(runs.ok()) << runs.status();
  std::vector<const float*> logits;
  for (const auto& run : *runs) logits.push_back(run.logits.data());
  ExpectGolden(logits);
}

TEST_P(ArchitecturesTest, DecodingAgreesWithTheReference) {
  const auto runs = bench::RunRequests(Options(model_, DType::kF32),
                                       {Decode(model_.golden)}, kKeepLogits);

  ASSERT_TRUE(runs.ok()) << runs.status();
  const auto vocab = model_.golden["config"]["vocab_size"].get<size_t>();
  std::vector<const float*> logits;
  for (const auto& position : model_.golden["positions"]) {
    logits.push_back(runs->front().logits.data() +
                     position.get<size_t>() * vocab);
  }
  ExpectGolden(logits);
}

TEST_P(ArchitecturesTest, PrefillAndDecodingGiveTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const auto prefills = bench::RunRequests(
        Options(model_, dtype), Prefills(model_.golden), kKeepLogits);
    const auto decode = bench::RunRequests(
        Options(model_, dtype), {Decode(model_.golden)}, kKeepLogits);

    ASSERT_TRUE(prefills.ok()) << prefills.status();
    ASSERT_TRUE(decode.ok()) << decode.status();
    for (size_t p = 0; p < prefills->size(); ++p) {
      const auto position = model_.golden["positions"][p].get<size_t>();
      const std::vector<float>& whole = (*prefills)[p].logits;
      EXPECT_EQ(
          std::memcmp(decode->front().logits.data() + position * whole.size(),
                      whole.data(), whole.size() * sizeof(float)),
          0)
          << "position " << position;
    }
  }
}

TEST_P(ArchitecturesTest, FrequenciesAgreeWithTheReference) {
  const auto config = ModelConfig::Load(model_.config_path());
  ASSERT_TRUE(config.ok()) << config.status();
  const nlohmann::json& rope = model_.golden["rope"];

  EXPECT_NEAR(config->rope_scaling.attention_factor,
              rope["attention_factor"].get<double>(), 1e-12);
  for (const auto& table : rope["frequencies"]) {
    const auto tokens = table["num_tokens"].get<int64_t>();
    const auto expected = table["values"].get<std::vector<double>>();
    const auto frequencies = RopeFrequencies(
        config->rope_theta, config->head_dim, config->rope_scaling, tokens);
    ASSERT_EQ(frequencies.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      // The reference computes in f32.
      EXPECT_NEAR(frequencies[i] / expected[i], 1.0, 2e-6)
          << "pair " << i << " of " << tokens << " tokens";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ArchitecturesTest,
                         testing::ValuesIn(GoldenModelCases()),
                         [](const testing::TestParamInfo<std::string>& given) {
                           std::string name;
                           for (char c : given.param) {
                             if (c != '-') name += c;
                           }
                           return name;
                         });

// The error of a model with the case's weights and `config`.
std::string Refusal(const char* name, const nlohmann::json& changes) {
  const GoldenModel model(name);
  nlohmann::json config = model.golden["config"];
  config.update(changes);
  std::ofstream(model.config_path()) << config;
  GenerationRequest request;
  request.prompt = {1};
  request.max_new_tokens = 1;
  return std::string(
      bench::RunRequests(Options(model, DType::kF32), {request}, kKeepLogits)
          .status()
          .message());
}

TEST(WeightsTest, TensorsThatTheConfigDoesNotExplainAreRefusedByName) {
  const nlohmann::json llama = {{"architectures", {"LlamaForCausalLM"}},
                                {"model_type", "llama"}};
  EXPECT_THAT(Refusal("qwen2", llama), HasSubstr("k_proj.bias"));
  EXPECT_THAT(Refusal("qwen3", llama), HasSubstr("k_norm.weight"));
  EXPECT_THAT(Refusal("llama-mha-biased", {{"mlp_bias", false}}),
              HasSubstr("down_proj.bias"));
  EXPECT_THAT(Refusal("llama", {{"num_hidden_layers", 1}}),
              HasSubstr("model.layers.1."));
}

TEST(WeightsTest, TensorsThatAreMissingAreNamed) {
  EXPECT_THAT(Refusal("llama", {{"attention_bias", true}}),
              HasSubstr("q_proj.bias"));
  EXPECT_THAT(Refusal("smollm2", {{"tie_word_embeddings", false}}),
              HasSubstr("lm_head.weight"));
  EXPECT_THAT(Refusal("llama", {{"num_key_value_heads", 2}}),
              HasSubstr("k_proj.weight"));
}

TEST(SlidingWindowTest, ASequenceMayNotOutgrowTheWindow) {
  GoldenModel model("mistral-window");
  GenerationRequest request = Decode(model.golden);
  request.max_new_tokens += 1;

  const auto runs =
      bench::RunRequests(Options(model, DType::kF32), {request}, kKeepLogits);

  EXPECT_EQ(runs.status().code(), absl::StatusCode::kInvalidArgument)
      << runs.status();
}

}  // namespace
}  // namespace farkv

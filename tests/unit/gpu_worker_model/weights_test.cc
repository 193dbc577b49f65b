#include "gpu_worker/model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "gpu_worker/model/model_files.h"
#include "twins.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ModelWeights> Weights(const std::string& path, Device& device) {
  const auto files = ModelFiles::Open(path);
  if (!files.ok()) return files.status();
  const auto config = files->ReadConfig();
  if (!config.ok()) return config.status();
  const auto tensors = files->OpenTensorSource();
  if (!tensors.ok()) return tensors.status();
  return ModelWeights::Load(**tensors, *config, device);
}

// Few random numbers to draw.
constexpr const Case& kQuick = kCases[6];

// Packing rounds rows up to whole panels, of at most this many.
constexpr size_t kPanelRows = 64;

void ExpectHeldAs(WeightType type, const PackedWeight& weight) {
  EXPECT_EQ(weight.type, type);
  const size_t rows = (static_cast<size_t>(weight.rows) + kPanelRows - 1) /
                      kPanelRows * kPanelRows;
  const auto groups = static_cast<size_t>(weight.cols / GroupElements(type));
  EXPECT_LE(static_cast<double>(weight.data.size()),
            1.03 * static_cast<double>(rows * groups * GroupBytes(type)));
}

TEST(ModelWeightsTest, LoadedMatricesKeepTheirStoredType) {
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  for (const Case& c : kCases) {
    if (c.weight == WeightType::kF32) continue;  // what others could become
    SCOPED_TRACE(TensorTypeName(c.type));
    const Twins twins(c, TwinsFolder(TensorTypeName(c.type)));
    // A twin of quantised values is stored as F32.
    const WeightType twin = IsQuantized(c.weight) ? WeightType::kF32 : c.weight;

    for (const auto& [path, type] : {std::pair(twins.gguf(), c.weight),
                                     std::pair(twins.safetensors(), twin)}) {
      const auto weights = Weights(path, *device);
      ASSERT_TRUE(weights.ok()) << weights.status();
      EXPECT_EQ(weights->embedding.type, type);
      ExpectHeldAs(type, weights->logits);
      ASSERT_EQ(weights->layers.size(), size_t{kLayers});
      for (const LayerWeights& layer : weights->layers) {
        for (const PackedWeight* weight :
             {&layer.query, &layer.key, &layer.value, &layer.output,
              &layer.gate, &layer.up, &layer.down}) {
          ExpectHeldAs(type, *weight);
        }
      }
    }
  }
}

TEST(ModelWeightsTest, ATensorThatNothingUsesIsRefusedByName) {
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  for (const char* name :
       {"blk.0.attn_sub_norm.weight", "blk.1.ffn_gate_inp.weight",
        "model.layers.2.input_layernorm.weight",
        "model.layers.7.mlp.up_proj.weight",
        "model.layers.1.self_attn.k_proj.bias",
        "model.layers.1.self_attn.o_proj.bias",
        "model.layers.1.mlp.down_proj.bias",
        "model.layers.0.self_attn.q_norm.weight", "lm_head.bias",
        "model.layers.0.mlp.experts.0.up_proj.weight"}) {
    const Twins twins(kQuick, TwinsFolder("surplus"), name);
    for (const std::string& path : {twins.gguf(), twins.safetensors()}) {
      const auto weights = Weights(path, *device);
      ASSERT_EQ(weights.status().code(), absl::StatusCode::kInvalidArgument)
          << name << path;
      const std::string message(weights.status().message());
      EXPECT_THAT(message, HasSubstr("no use for")) << name;
      EXPECT_TRUE(
          absl::StrContains(message, name) ||
          absl::StrContains(message, GgufTensorName(name).value_or(name)))
          << message;
    }
  }
}

TEST(ModelWeightsTest, TensorsThatSayNothingNewAreTaken) {
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  for (const char* name :
       {"lm_head.weight", "model.layers.1.self_attn.rotary_emb.inv_freq"}) {
    const Twins twins(kQuick, TwinsFolder("copies"), name);
    const auto weights = Weights(twins.safetensors(), *device);
    EXPECT_TRUE(weights.ok()) << weights.status();
  }
}

}  // namespace
}  // namespace farkv

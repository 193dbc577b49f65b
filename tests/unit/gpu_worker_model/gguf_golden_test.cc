// Golden checkpoints as GGUF files, written here as llama.cpp's converter
// writes them, against the logits that the reference computed from their
// safetensors. Names and keys are spelled out: none come from the code under
// test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "golden_logits.h"
#include "golden_models.h"
#include "gpu_worker/checkpoint/safetensors.h"
#include "tests/testing/gguf_writer.h"

namespace farkv {
namespace {

using ::farkv::testing::RawBytes;
using nlohmann::json;

std::string StoredName(const std::string& name) {
  return absl::StrReplaceAll(name, {{"model.embed_tokens", "token_embd"},
                                    {"model.norm", "output_norm"},
                                    {"lm_head", "output"},
                                    {"model.layers", "blk"},
                                    {"input_layernorm", "attn_norm"},
                                    {"post_attention_layernorm", "ffn_norm"},
                                    {"self_attn.q_proj", "attn_q"},
                                    {"self_attn.k_proj", "attn_k"},
                                    {"self_attn.v_proj", "attn_v"},
                                    {"self_attn.o_proj", "attn_output"},
                                    {"self_attn.q_norm", "attn_q_norm"},
                                    {"self_attn.k_norm", "attn_k_norm"},
                                    {"mlp.gate_proj", "ffn_gate"},
                                    {"mlp.up_proj", "ffn_up"},
                                    {"mlp.down_proj", "ffn_down"}});
}

class GoldenGguf {
 public:
  explicit GoldenGguf(const std::string& name)
      : model(name), config_(model.golden["config"]) {
    arch_ = config_["model_type"].get<std::string>();
    AddShape();
    AddRope();
    for (const auto& entry :
         std::filesystem::directory_iterator(model.path())) {
      if (entry.path().extension() == ".safetensors") AddTensors(entry.path());
    }
    gguf_.Add("tokenizer.ggml.model", "gpt2");
    gguf_.Add("tokenizer.ggml.pre", "gpt-2");
    gguf_.AddArray<std::string>("tokenizer.ggml.tokens", {"a", "b", "ab"});
    gguf_.AddArray<std::string>("tokenizer.ggml.merges", {"a b"});
    std::ofstream(path(), std::ios::binary) << gguf_.Bytes();
  }

  std::string path() const { return model.path() + "/golden.gguf"; }

  const GoldenModel model;

 private:
  std::string Key(const char* rest) const {
    return absl::StrCat(arch_, ".", rest);
  }
  uint32_t Field(const char* name) const { return config_.at(name); }

  void AddShape() {
    gguf_.Add("general.architecture", arch_);
    gguf_.Add(Key("context_length"), Field("max_position_embeddings"));
    gguf_.Add(Key("embedding_length"), Field("hidden_size"));
    gguf_.Add(Key("block_count"), Field("num_hidden_layers"));
    gguf_.Add(Key("feed_forward_length"), Field("intermediate_size"));
    gguf_.Add(Key("attention.head_count"), Field("num_attention_heads"));
    gguf_.Add(Key("attention.head_count_kv"), Field("num_key_value_heads"));
    gguf_.Add(Key("attention.key_length"), Field("head_dim"));
    gguf_.Add(Key("attention.value_length"), Field("head_dim"));
    gguf_.Add(Key("attention.layer_norm_rms_epsilon"),
              config_["rms_norm_eps"].get<float>());
    gguf_.Add(Key("rope.freq_base"), config_["rope_theta"].get<float>());
  }

  void AddRope() {
    if (!config_.contains("rope_scaling")) return;
    const json& scaling = config_["rope_scaling"];
    const std::string type =
        scaling.value("rope_type", scaling.value("type", ""));
    if (type == "llama3") return AddDivisors(scaling);
    gguf_.Add(Key("rope.scaling.type"), type);
    gguf_.Add(Key("rope.scaling.factor"), scaling["factor"].get<float>());
    if (type != "yarn") return;
    gguf_.Add(Key("rope.scaling.original_context_length"),
              scaling["original_max_position_embeddings"].get<uint32_t>());
  }

  // Long waves are stretched by the factor, short ones not, those between by
  // something between.
  void AddDivisors(const json& scaling) {
    const double factor = scaling["factor"], low = scaling["low_freq_factor"],
                 high = scaling["high_freq_factor"],
                 original = scaling["original_max_position_embeddings"];
    const auto pairs = static_cast<int>(Field("head_dim")) / 2;
    std::string bytes;
    for (int i = 0; i < pairs; ++i) {
      const double frequency =
          std::pow(config_["rope_theta"].get<double>(), -1.0 * i / pairs);
      const double waves = original * frequency / (2 * std::numbers::pi);
      const double smooth = (waves - low) / (high - low);
      double divisor = 1 / ((1 - smooth) / factor + smooth);
      if (waves > high) divisor = 1;
      if (waves < low) divisor = factor;
      bytes += RawBytes(static_cast<float>(divisor));
    }
    gguf_.AddTensor("rope_freqs.weight", {pairs}, 0, bytes);
  }

  void AddTensors(const std::filesystem::path& path) {
    const auto file = SafetensorsFile::Open(path.string());
    ASSERT_TRUE(file.ok()) << file.status();
    for (const auto& [name, view] : (*file)->tensors()) {
      ASSERT_EQ(view.type, TensorType::kF32) << name;
      std::string bytes(reinterpret_cast<const char*>(view.bytes.data()),
                        view.bytes.size());
      if (arch_ == "llama" && (absl::StrContains(name, "q_proj") ||
                               absl::StrContains(name, "k_proj"))) {
        bytes = MoveRows(
            bytes, bytes.size() / static_cast<size_t>(view.shape.front()));
      }
      gguf_.AddTensor(StoredName(name), view.shape, 0, bytes);
    }
  }

  // Row (half, pair) of a head goes to (pair, half).
  std::string MoveRows(const std::string& rows, size_t row_bytes) const {
    const size_t dim = Field("head_dim");
    std::string moved;
    for (size_t to = 0; to < rows.size() / row_bytes; ++to) {
      const size_t pair = to % dim / 2, half = to % 2;
      const size_t from = to / dim * dim + half * (dim / 2) + pair;
      moved += rows.substr(from * row_bytes, row_bytes);
    }
    return moved;
  }

  const json config_;
  std::string arch_;
  testing::GgufWriter gguf_;
};

class GgufGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufGoldenTest, LogitsAreThoseOfTheReference) {
  const GoldenGguf gguf(GetParam());
  EngineOptions options;
  options.model = gguf.path();
  options.kv_dtype = DType::kF32;
  options.prefill_chunk = 512;
  options.tiering.t0_bytes = uint64_t{16} << 20;

  const auto runs = bench::RunRequests(options, Prefills(gguf.model.golden),
                                       {.keep_logits = true});

  ASSERT_TRUE(runs.ok()) << runs.status();
  for (size_t p = 0; p < runs->size(); ++p) {
    const auto expected =
        gguf.model.golden["logits"][p].get<std::vector<float>>();
    EXPECT_LT(Apart((*runs)[p].logits.data(), expected), 1e-4)
        << "position " << gguf.model.golden["positions"][p];
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GgufGoldenTest,
                         ::testing::Values("llama", "llama-linear",
                                           "llama-yarn", "llama3", "qwen2",
                                           "qwen2-yarn", "r1-distill-qwen",
                                           "qwen3"),
                         [](const auto& given) {
                           return absl::StrReplaceAll(given.param, {{"-", ""}});
                         });

}  // namespace
}  // namespace farkv

// A Llama-shaped checkpoint (no QK-norm, own output matrix, F32 and F16
// weights) against a plain forward pass in double.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "bench/engine_run.h"
#include "common/base/half.h"
#include "common/base/random.h"

namespace farkv {
namespace {

constexpr int kHidden = 48, kInner = 80, kLayers = 2, kHeads = 6, kKvHeads = 2;
constexpr int kDim = 16, kVocab = 40;
constexpr double kTheta = 10000.0, kEpsilon = 1e-6;

using Matrix = std::vector<double>;  // [rows][cols]

// Names, shapes and values; every other tensor is stored as F16.
class Checkpoint {
 public:
  Checkpoint() {
    Add("model.embed_tokens.weight", {kVocab, kHidden});
    for (int l = 0; l < kLayers; ++l) {
      const std::string p = absl::StrCat("model.layers.", l, ".");
      Add(p + "input_layernorm.weight", {kHidden});
      Add(p + "post_attention_layernorm.weight", {kHidden});
      Add(p + "self_attn.q_proj.weight", {kHeads * kDim, kHidden});
      Add(p + "self_attn.k_proj.weight", {kKvHeads * kDim, kHidden});
      Add(p + "self_attn.v_proj.weight", {kKvHeads * kDim, kHidden});
      Add(p + "self_attn.o_proj.weight", {kHidden, kHeads * kDim});
      Add(p + "mlp.gate_proj.weight", {kInner, kHidden});
      Add(p + "mlp.up_proj.weight", {kInner, kHidden});
      Add(p + "mlp.down_proj.weight", {kHidden, kInner});
    }
    Add("model.norm.weight", {kHidden});
    Add("lm_head.weight", {kVocab, kHidden});
  }

  const Matrix& operator[](const std::string& name) const {
    return values_.at(name);
  }

  void Write(const std::string& folder) const {
    const std::string header = header_.dump();
    const uint64_t size = header.size();
    std::ofstream file(folder + "/model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), 8);
    file << header << data_;
  }

 private:
  void Add(const std::string& name, const std::vector<int>& shape) {
    int count = 1;
    for (int extent : shape) count *= extent;
    const bool half = values_.size() % 2 == 1;
    const size_t begin = data_.size();
    Matrix values;
    for (int i = 0; i < count; ++i) {
      const double unit =
          ToUnit(CounterDraw(5, {values_.size(), static_cast<uint64_t>(i)}));
      // Halves of one binade and both signs, so that both types are exact.
      const auto bits = static_cast<uint16_t>(
          (unit < 0.5 ? 0x8000 : 0) | 0x2c00 | static_cast<int>(unit * 1023));
      const float value = HalfToFloat(bits);
      values.push_back(static_cast<double>(value));
      data_.append(half ? reinterpret_cast<const char*>(&bits)
                        : reinterpret_cast<const char*>(&value),
                   half ? 2 : 4);
    }
    header_[name] = {{"dtype", half ? "F16" : "F32"},
                     {"shape", shape},
                     {"data_offsets", {begin, data_.size()}}};
    values_[name] = std::move(values);
  }

  nlohmann::json header_;
  std::string data_;
  std::map<std::string, Matrix> values_;
};

Matrix Times(const Matrix& weight, const Matrix& x) {
  Matrix out(weight.size() / x.size(), 0.0);
  for (size_t i = 0; i < weight.size(); ++i) {
    out[i / x.size()] += weight[i] * x[i % x.size()];
  }
  return out;
}

Matrix Norm(const Matrix& x, const Matrix& weight) {
  double squares = 0.0;
  for (double v : x) squares += v * v;
  const double scale =
      1.0 / std::sqrt(squares / static_cast<double>(x.size()) + kEpsilon);
  Matrix out = x;
  for (size_t i = 0; i < x.size(); ++i) out[i] *= scale * weight[i];
  return out;
}

void Rotate(Matrix& heads, int position) {
  for (size_t head = 0; head < heads.size(); head += kDim) {
    for (size_t i = 0; i < kDim / 2; ++i) {
      const double angle =
          position * std::pow(kTheta, -2.0 * static_cast<double>(i) / kDim);
      double& a = heads[head + i];
      double& b = heads[head + i + kDim / 2];
      const double rotated = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = rotated;
    }
  }
}

// Keys and values of one layer, one row per position.
struct Cache {
  std::vector<Matrix> keys, values;
};

Matrix Attend(const Matrix& query, const Cache& cache) {
  Matrix out(query.size(), 0.0);
  for (size_t h = 0; h < kHeads; ++h) {
    const size_t kv = h / (kHeads / kKvHeads) * kDim;
    std::vector<double> weights;
    double total = 0.0;
    for (const Matrix& key : cache.keys) {
      double dot = 0.0;
      for (size_t c = 0; c < kDim; ++c)
        dot += query[h * kDim + c] * key[kv + c];
      weights.push_back(std::exp(dot / std::sqrt(double{kDim})));
      total += weights.back();
    }
    for (size_t t = 0; t < weights.size(); ++t) {
      for (size_t c = 0; c < kDim; ++c) {
        out[h * kDim + c] += weights[t] / total * cache.values[t][kv + c];
      }
    }
  }
  return out;
}

void AddTo(Matrix& x, const Matrix& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// Logits behind the last token.
Matrix Reference(const Checkpoint& w, const std::vector<int32_t>& tokens) {
  std::vector<Cache> caches(kLayers);
  Matrix x;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto* row = &w["model.embed_tokens.weight"]
                        [static_cast<size_t>(tokens[t]) * kHidden];
    x.assign(row, row + kHidden);
    for (int l = 0; l < kLayers; ++l) {
      const std::string p = absl::StrCat("model.layers.", l, ".");
      const std::string self = p + "self_attn.";
      Matrix normed = Norm(x, w[p + "input_layernorm.weight"]);
      Matrix query = Times(w[self + "q_proj.weight"], normed);
      Matrix key = Times(w[self + "k_proj.weight"], normed);
      Rotate(query, static_cast<int>(t));
      Rotate(key, static_cast<int>(t));
      Cache& cache = caches[static_cast<size_t>(l)];
      cache.keys.push_back(key);
      cache.values.push_back(Times(w[self + "v_proj.weight"], normed));
      AddTo(x, Times(w[self + "o_proj.weight"], Attend(query, cache)));
      normed = Norm(x, w[p + "post_attention_layernorm.weight"]);
      Matrix gate = Times(w[p + "mlp.gate_proj.weight"], normed);
      const Matrix up = Times(w[p + "mlp.up_proj.weight"], normed);
      for (size_t i = 0; i < gate.size(); ++i) {
        gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
      }
      AddTo(x, Times(w[p + "mlp.down_proj.weight"], gate));
    }
  }
  return Times(w["lm_head.weight"], Norm(x, w["model.norm.weight"]));
}

void WriteTexts(const std::string& folder) {
  std::ofstream(folder + "/config.json")
      << nlohmann::json({{"architectures", {"LlamaForCausalLM"}},
                         {"hidden_size", kHidden},
                         {"intermediate_size", kInner},
                         {"num_hidden_layers", kLayers},
                         {"num_attention_heads", kHeads},
                         {"num_key_value_heads", kKvHeads},
                         {"head_dim", kDim},
                         {"vocab_size", kVocab},
                         {"max_position_embeddings", 256},
                         {"rms_norm_eps", kEpsilon},
                         {"rope_theta", kTheta}});
  std::ofstream(folder + "/tokenizer.json")
      << nlohmann::json({{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}}}}}});
}

TEST(LlamaTest, LogitsAgreeWithAPlainForwardPass) {
  const std::string folder =
      ::testing::TempDir() + "farkv-llama-test-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const Checkpoint checkpoint;
  checkpoint.Write(folder);
  WriteTexts(folder);
  EngineOptions options;
  options.model = folder;
  options.kv_dtype = DType::kF32;
  options.tiering.t0_bytes = uint64_t{16} << 20;
  GenerationRequest request;
  request.prompt = bench::RandomTokens(3, 1, 70, kVocab);
  request.max_new_tokens = 1;

  const auto runs =
      bench::RunRequests(options, {request}, {.keep_logits = true});

  std::filesystem::remove_all(folder);
  ASSERT_TRUE(runs.ok()) << runs.status();
  const Matrix expected = Reference(checkpoint, request.prompt);
  ASSERT_EQ(runs->front().logits.size(), expected.size());
  double largest = 0.0, difference = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(
        difference,
        std::abs(static_cast<double>(runs->front().logits[i]) - expected[i]));
  }
  EXPECT_LT(difference, 1e-4 * largest);
}

}  // namespace
}  // namespace farkv

// A model in a GGUF file and its twin in safetensors: the same numbers in the
// same rows; for quantised types the twin holds what their groups stand for.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_MODEL_TWINS_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_MODEL_TWINS_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gpu_worker/checkpoint/gguf_tensors.h"
#include "gpu_worker/checkpoint/tensor_source.h"
#include "kernels/quantized_groups.h"
#include "tests/testing/gguf_writer.h"

namespace farkv {

using ::farkv::testing::RawBytes;

// Rows are whole groups of 256.
constexpr int kHidden = 256, kInner = 256, kLayers = 2, kHeads = 4;
constexpr int kKvHeads = 2, kDim = 64, kVocab = 32;

// A type as GGUF numbers it, and how its twin is stored.
struct Case {
  TensorType type;
  uint32_t number;
  const char* twin;   // dtype of the safetensors file
  WeightType weight;  // of quantised types
  double tolerance;   // share of the largest logit; 0: the same bits
};
constexpr Case kCases[] = {
    {TensorType::kF32, 0, "F32", WeightType::kF32, 0.0},
    {TensorType::kF16, 1, "F16", WeightType::kF32, 0.0},
    {TensorType::kBf16, 30, "BF16", WeightType::kBf16, 0.0},
    {TensorType::kQ8_0, 8, "F32", WeightType::kQ8_0, 0.03},
    {TensorType::kQ4_0, 2, "F32", WeightType::kQ4_0, 0.03},
    {TensorType::kQ4_1, 3, "F32", WeightType::kQ4_1, 0.03},
    {TensorType::kQ4_K, 12, "F32", WeightType::kQ4_K, 0.03},
    {TensorType::kQ6_K, 14, "F32", WeightType::kQ6_K, 0.03},
};

inline void SetHalf(std::string& bytes, size_t at, uint16_t half) {
  std::memcpy(bytes.data() + at, &half, 2);
}

// A group of random bytes whose scales keep values within about 1/8.
inline std::string RandomGroup(TensorType type, uint64_t draw) {
  std::string bytes;
  for (int64_t i = 0; i < GroupBytes(type); ++i) {
    const auto index = static_cast<uint64_t>(i);
    bytes.push_back(static_cast<char>(CounterDraw(9, {draw, index}) & 0xff));
  }
  const auto sign = static_cast<uint16_t>((bytes[0] & 1) << 15);
  switch (type) {
    case TensorType::kF32:
      return RawBytes(static_cast<float>(bytes[0]) / 1024.0f);
    case TensorType::kF16:
      SetHalf(bytes, 0, static_cast<uint16_t>(sign | 0x2c00 | (bytes[1] & 15)));
      break;
    case TensorType::kBf16:
      SetHalf(bytes, 0, static_cast<uint16_t>(sign | 0x3d80 | (bytes[1] & 15)));
      break;
    case TensorType::kQ8_0:
      SetHalf(bytes, 0, 0x1400);  // 2^-10
      break;
    case TensorType::kQ4_0:
      SetHalf(bytes, 0, 0x2400);  // 2^-6
      break;
    case TensorType::kQ4_1:
      SetHalf(bytes, 0, 0x2400);
      SetHalf(bytes, 2, 0xb000);  // -2^-3
      break;
    case TensorType::kQ4_K:
      SetHalf(bytes, 0, 0x0c00);  // 2^-12
      SetHalf(bytes, 2, 0x1800);  // 2^-9
      break;
    case TensorType::kQ6_K:
      SetHalf(bytes, 208, 0x0200);  // 2^-15
      break;
  }
  return bytes;
}

// What llama.cpp's converter does to the rows of Q and K: row (half, pair) of
// a head goes to (pair, half).
inline std::string MoveRows(const std::string& rows, size_t row_bytes) {
  std::string moved;
  for (size_t head = 0; head < rows.size() / row_bytes / kDim; ++head) {
    for (size_t pair = 0; pair < kDim / 2; ++pair) {
      for (size_t half = 0; half < 2; ++half) {
        const size_t from = head * kDim + half * (kDim / 2) + pair;
        moved += rows.substr(from * row_bytes, row_bytes);
      }
    }
  }
  return moved;
}

class Twins {
 public:
  // With `surplus` as one more vector in each file.
  Twins(const Case& c, std::string folder, const char* surplus = "")
      : case_(c), folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    AddMatrix("model.embed_tokens.weight", kVocab, kHidden);
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string p = absl::StrCat("model.layers.", layer, ".");
      AddNorm(p + "input_layernorm.weight");
      AddNorm(p + "post_attention_layernorm.weight");
      AddMatrix(p + "self_attn.q_proj.weight", kHeads * kDim, kHidden);
      AddMatrix(p + "self_attn.k_proj.weight", kKvHeads * kDim, kHidden);
      AddMatrix(p + "self_attn.v_proj.weight", kKvHeads * kDim, kHidden);
      AddMatrix(p + "self_attn.o_proj.weight", kHidden, kHeads * kDim);
      AddMatrix(p + "mlp.gate_proj.weight", kInner, kHidden);
      AddMatrix(p + "mlp.up_proj.weight", kInner, kHidden);
      AddMatrix(p + "mlp.down_proj.weight", kHidden, kInner);
    }
    AddNorm("model.norm.weight");
    if (*surplus != '\0') {
      AddTwin(surplus, "F32", {1}, RawBytes(1.0f));
      gguf_.AddTensor(GgufTensorName(surplus).value_or(surplus), {1}, 0,
                      RawBytes(1.0f));
    }
    WriteGguf();
    WriteSafetensors();
  }
  ~Twins() { std::filesystem::remove_all(folder_); }

  std::string gguf() const { return folder_ + "/twin.gguf"; }
  const std::string& safetensors() const { return folder_; }

 private:
  void AddNorm(const std::string& name) {
    std::string bytes;
    for (int i = 0; i < kHidden; ++i) {
      bytes += RawBytes(1.0f + static_cast<float>(i % 7) / 16.0f);
    }
    gguf_.AddTensor(*GgufTensorName(name), {kHidden}, 0, bytes);
    AddTwin(name, "F32", {kHidden}, bytes);
  }

  void AddMatrix(const std::string& name, int rows, int cols) {
    const int64_t groups = int64_t{rows} * cols / GroupElements(case_.type);
    std::string bytes;
    for (int64_t i = 0; i < groups; ++i) {
      bytes += RandomGroup(case_.type, ++draws_);
    }
    const size_t row_bytes = bytes.size() / static_cast<size_t>(rows);
    const bool moved =
        absl::StrContains(name, "q_proj") || absl::StrContains(name, "k_proj");
    gguf_.AddTensor(*GgufTensorName(name), {rows, cols}, case_.number,
                    moved ? MoveRows(bytes, row_bytes) : bytes);
    AddTwin(
        name, case_.twin, {rows, cols},
        IsQuantized(case_.weight) ? Dequantize(bytes, row_bytes, cols) : bytes);
  }

  std::string Dequantize(const std::string& bytes, size_t row_bytes,
                         int cols) const {
    std::string out;
    std::vector<float> row(static_cast<size_t>(cols));
    for (size_t at = 0; at < bytes.size(); at += row_bytes) {
      DequantizeRow(case_.weight,
                    reinterpret_cast<const std::byte*>(bytes.data() + at), cols,
                    row.data());
      out.append(reinterpret_cast<const char*>(row.data()), row.size() * 4);
    }
    return out;
  }

  void AddTwin(const std::string& name, const char* dtype,
               const std::vector<int>& shape, const std::string& bytes) {
    header_[name] = {
        {"dtype", dtype},
        {"shape", shape},
        {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }

  void WriteGguf() {
    gguf_.Add("general.architecture", "llama");
    gguf_.Add("llama.context_length", uint32_t{256});
    gguf_.Add("llama.embedding_length", uint32_t{kHidden});
    gguf_.Add("llama.block_count", uint32_t{kLayers});
    gguf_.Add("llama.feed_forward_length", uint32_t{kInner});
    gguf_.Add("llama.attention.head_count", uint32_t{kHeads});
    gguf_.Add("llama.attention.head_count_kv", uint32_t{kKvHeads});
    gguf_.Add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_.Add("tokenizer.ggml.model", "gpt2");
    gguf_.Add("tokenizer.ggml.pre", "gpt-2");
    gguf_.AddArray<std::string>("tokenizer.ggml.tokens", {"a", "b", "ab"});
    gguf_.AddArray<std::string>("tokenizer.ggml.merges", {"a b"});
    std::ofstream(gguf(), std::ios::binary) << gguf_.Bytes();
  }

  void WriteSafetensors() const {
    std::ofstream(folder_ + "/config.json")
        << nlohmann::json({{"architectures", {"LlamaForCausalLM"}},
                           {"hidden_size", kHidden},
                           {"intermediate_size", kInner},
                           {"num_hidden_layers", kLayers},
                           {"num_attention_heads", kHeads},
                           {"num_key_value_heads", kKvHeads},
                           {"vocab_size", kVocab},
                           {"max_position_embeddings", 256},
                           {"rms_norm_eps", 1e-5},
                           {"tie_word_embeddings", true}});
    std::ofstream(folder_ + "/tokenizer.json") << nlohmann::json(
        {{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}}}}}});
    const std::string header = header_.dump();
    std::ofstream(folder_ + "/model.safetensors", std::ios::binary)
        << RawBytes(uint64_t{header.size()}) << header << data_;
  }

  const Case& case_;
  const std::string folder_;
  testing::GgufWriter gguf_;
  nlohmann::json header_;
  std::string data_;
  uint64_t draws_ = 0;
};

// A folder for twins, of this process.
inline std::string TwinsFolder(const char* part) {
  return absl::StrCat(::testing::TempDir(), "farkv-gguf-", getpid(), "-", part);
}

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_MODEL_TWINS_H_

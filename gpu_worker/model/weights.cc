#include "gpu_worker/model/weights.h"

#include <cstring>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/half.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// How the kernels hold a stored type.
WeightType HeldType(TensorType type) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
      return WeightType::kF32;
    case TensorType::kBf16:
      return WeightType::kBf16;
    case TensorType::kQ8_0:
      return WeightType::kQ8_0;
    case TensorType::kQ4_0:
      return WeightType::kQ4_0;
    case TensorType::kQ4_1:
      return WeightType::kQ4_1;
    case TensorType::kQ4_K:
      return WeightType::kQ4_K;
    case TensorType::kQ6_K:
      return WeightType::kQ6_K;
  }
  return WeightType::kF32;
}

// Widens an unquantised type to f32.
std::vector<float> ToFloats(const TensorView& tensor) {
  const auto count = static_cast<size_t>(tensor.NumElements());
  std::vector<float> values(count);
  if (tensor.type == TensorType::kF32) {
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto bits = LoadLe<uint16_t>(tensor.bytes.data() + 2 * i);
    values[i] = tensor.type == TensorType::kBf16 ? Bf16ToFloat(bits)
                                                 : HalfToFloat(bits);
  }
  return values;
}

// Copies tensors of one source to one device, counting parameters.
class Loader {
 public:
  Loader(const TensorSource& source, Device& device)
      : source_(source), device_(device), stream_(device.NewStream()) {}

  absl::StatusOr<DeviceBuffer> Vector(const std::string& name, int32_t size) {
    FARKV_ASSIGN_OR_RETURN(const TensorView tensor, source_.Find(name, {size}));
    if (IsQuantized(HeldType(tensor.type))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", source_.path(), "\": tensor ", name, " is ",
          TensorTypeName(tensor.type), ", must be F32, F16 or BF16"));
    }
    num_parameters_ += size;
    return Upload(ToFloats(tensor));
  }

  // An empty buffer unless it is `wanted`.
  absl::StatusOr<DeviceBuffer> VectorIf(bool wanted, const std::string& name,
                                        int32_t size) {
    if (wanted) return Vector(name, size);
    return DeviceBuffer();
  }

  absl::StatusOr<PackedWeight> Matrix(const std::string& name, int32_t rows,
                                      int32_t cols) {
    FARKV_ASSIGN_OR_RETURN(const TensorView tensor,
                           source_.Find(name, {rows, cols}));
    num_parameters_ += int64_t{rows} * cols;
    return Pack(tensor, rows, cols);
  }

  absl::StatusOr<PackedWeight> Pack(const TensorView& tensor, int32_t rows,
                                    int32_t cols) {
    if (tensor.type == TensorType::kF16) {
      const std::vector<float> wide = ToFloats(tensor);
      return PackWeight(device_, *stream_, WeightType::kF32, wide.data(), rows,
                        cols);
    }
    return PackWeight(device_, *stream_, HeldType(tensor.type),
                      tensor.bytes.data(), rows, cols);
  }

  absl::StatusOr<EmbeddingTable> Embedding(const TensorView& tensor,
                                           const ModelConfig& config) {
    EmbeddingTable table;
    table.vocab = config.vocab_size;
    table.width = config.hidden_size;
    table.type = HeldType(tensor.type);
    if (tensor.type == TensorType::kF16) {
      FARKV_ASSIGN_OR_RETURN(table.data, Upload(ToFloats(tensor)));
    } else {
      FARKV_ASSIGN_OR_RETURN(table.data,
                             Upload(tensor.bytes.data(), tensor.bytes.size()));
    }
    num_parameters_ += tensor.NumElements();
    return table;
  }

  int64_t num_parameters() const { return num_parameters_; }
  void Finish() { stream_->Synchronize(); }

 private:
  absl::StatusOr<DeviceBuffer> Upload(const std::vector<float>& values) {
    return Upload(values.data(), values.size() * sizeof(float));
  }
  // Waits, because an asynchronous stream reads `data` late.
  absl::StatusOr<DeviceBuffer> Upload(const void* data, size_t bytes) {
    FARKV_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_.Allocate(bytes));
    stream_->Copy(buffer.data(), data, bytes);
    stream_->Synchronize();
    return buffer;
  }

  const TensorSource& source_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  int64_t num_parameters_ = 0;
};

absl::Status LoadAttention(Loader& loader, const ModelConfig& config,
                           const std::string& prefix, LayerWeights& w) {
  const int32_t hidden = config.hidden_size;
  const int32_t query_width = config.num_query_heads * config.head_dim;
  const int32_t kv_width = config.num_kv_heads * config.head_dim;
  const struct {
    const char* name;
    PackedWeight& weight;
    int32_t rows, cols;
    DeviceBuffer& bias;
    bool has_bias;
  } projections[] = {
      {"q_proj", w.query, query_width, hidden, w.query_bias, config.qkv_bias},
      {"k_proj", w.key, kv_width, hidden, w.key_bias, config.qkv_bias},
      {"v_proj", w.value, kv_width, hidden, w.value_bias, config.qkv_bias},
      {"o_proj", w.output, hidden, query_width, w.output_bias,
       config.output_bias}};
  for (const auto& p : projections) {
    const std::string name = absl::StrCat(prefix, p.name);
    FARKV_ASSIGN_OR_RETURN(p.weight,
                           loader.Matrix(name + ".weight", p.rows, p.cols));
    FARKV_ASSIGN_OR_RETURN(p.bias,
                           loader.VectorIf(p.has_bias, name + ".bias", p.rows));
  }
  FARKV_ASSIGN_OR_RETURN(
      w.query_norm, loader.VectorIf(config.qk_norm, prefix + "q_norm.weight",
                                    config.head_dim));
  FARKV_ASSIGN_OR_RETURN(
      w.key_norm, loader.VectorIf(config.qk_norm, prefix + "k_norm.weight",
                                  config.head_dim));
  return absl::OkStatus();
}

absl::Status LoadMlp(Loader& loader, const ModelConfig& config,
                     const std::string& prefix, LayerWeights& w) {
  const int32_t hidden = config.hidden_size;
  const int32_t inner = config.intermediate_size;
  const struct {
    const char* name;
    PackedWeight& weight;
    int32_t rows, cols;
    DeviceBuffer& bias;
  } projections[] = {{"gate_proj", w.gate, inner, hidden, w.gate_bias},
                     {"up_proj", w.up, inner, hidden, w.up_bias},
                     {"down_proj", w.down, hidden, inner, w.down_bias}};
  for (const auto& p : projections) {
    const std::string name = absl::StrCat(prefix, p.name);
    FARKV_ASSIGN_OR_RETURN(p.weight,
                           loader.Matrix(name + ".weight", p.rows, p.cols));
    FARKV_ASSIGN_OR_RETURN(
        p.bias, loader.VectorIf(config.mlp_bias, name + ".bias", p.rows));
  }
  return absl::OkStatus();
}

absl::StatusOr<LayerWeights> LoadLayer(Loader& loader,
                                       const ModelConfig& config, int layer) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  LayerWeights w;
  FARKV_ASSIGN_OR_RETURN(
      w.input_norm,
      loader.Vector(prefix + "input_layernorm.weight", config.hidden_size));
  FARKV_ASSIGN_OR_RETURN(
      w.post_norm, loader.Vector(prefix + "post_attention_layernorm.weight",
                                 config.hidden_size));
  FARKV_RETURN_IF_ERROR(
      LoadAttention(loader, config, prefix + "self_attn.", w));
  FARKV_RETURN_IF_ERROR(LoadMlp(loader, config, prefix + "mlp.", w));
  return w;
}

// Names of all tensors that a model of this config may have.
std::set<std::string> KnownNames(const ModelConfig& config) {
  std::set<std::string> names = {
      "model.embed_tokens.weight", "model.norm.weight",
      // Beside tied embeddings it is a copy of them.
      "lm_head.weight",
      // Read with the config, or computed from it.
      "rope_freqs.weight", "model.rotary_emb.inv_freq"};
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = absl::StrCat("model.layers.", layer, ".");
    const auto add = [&](absl::string_view name, bool bias) {
      names.insert(absl::StrCat(prefix, name, ".weight"));
      if (bias) names.insert(absl::StrCat(prefix, name, ".bias"));
    };
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
      add(norm, false);
    }
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      add(absl::StrCat("self_attn.", name), config.qkv_bias);
    }
    add("self_attn.o_proj", config.output_bias);
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      add(absl::StrCat("mlp.", name), config.mlp_bias);
    }
    if (config.qk_norm) {
      add("self_attn.q_norm", false);
      add("self_attn.k_norm", false);
    }
    names.insert(prefix + "self_attn.rotary_emb.inv_freq");
  }
  return names;
}

absl::Status RefuseSurplus(const TensorSource& tensors,
                           const ModelConfig& config) {
  const auto unused = tensors.FindUnused(KnownNames(config));
  if (!unused) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", tensors.path(), "\" has a tensor ", *unused,
                   ", which the model's config has no use for"));
}

}  // namespace

absl::StatusOr<ModelWeights> ModelWeights::Load(const TensorSource& tensors,
                                                const ModelConfig& config,
                                                Device& device) {
  FARKV_RETURN_IF_ERROR(RefuseSurplus(tensors, config));
  Loader loader(tensors, device);
  ModelWeights weights;
  FARKV_ASSIGN_OR_RETURN(const TensorView embedding,
                         tensors.Find("model.embed_tokens.weight",
                                      {config.vocab_size, config.hidden_size}));
  FARKV_ASSIGN_OR_RETURN(weights.embedding,
                         loader.Embedding(embedding, config));
  for (int layer = 0; layer < config.num_layers; ++layer) {
    FARKV_ASSIGN_OR_RETURN(LayerWeights loaded,
                           LoadLayer(loader, config, layer));
    weights.layers.push_back(std::move(loaded));
  }
  FARKV_ASSIGN_OR_RETURN(weights.final_norm, loader.Vector("model.norm.weight",
                                                           config.hidden_size));
  if (config.tied_embeddings) {
    FARKV_ASSIGN_OR_RETURN(
        weights.logits,
        loader.Pack(embedding, config.vocab_size, config.hidden_size));
  } else {
    FARKV_ASSIGN_OR_RETURN(
        weights.logits,
        loader.Matrix("lm_head.weight", config.vocab_size, config.hidden_size));
  }
  loader.Finish();
  weights.num_parameters = loader.num_parameters();
  return weights;
}

}  // namespace farkv

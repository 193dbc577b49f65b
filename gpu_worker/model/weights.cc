#include "gpu_worker/model/weights.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/safetensors.h"
#include "gpu_worker/model/half.h"

namespace farkv {
namespace {

// Widens any stored type to f32.
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

// Copies tensors of one file to one device, counting parameters.
class Loader {
 public:
  Loader(const SafetensorsFile& file, Device& device)
      : file_(file), device_(device), stream_(device.NewStream()) {}

  absl::StatusOr<DeviceBuffer> Vector(const std::string& name, int32_t size) {
    FARKV_ASSIGN_OR_RETURN(const TensorView tensor, file_.Find(name, {size}));
    num_parameters_ += size;
    return Upload(ToFloats(tensor));
  }

  absl::StatusOr<PackedWeight> Matrix(const std::string& name, int32_t rows,
                                      int32_t cols) {
    FARKV_ASSIGN_OR_RETURN(const TensorView tensor,
                           file_.Find(name, {rows, cols}));
    num_parameters_ += int64_t{rows} * cols;
    return Pack(tensor, rows, cols);
  }

  absl::StatusOr<PackedWeight> Pack(const TensorView& tensor, int32_t rows,
                                    int32_t cols) {
    if (tensor.type != TensorType::kF16) {
      const WeightType type = tensor.type == TensorType::kBf16
                                  ? WeightType::kBf16
                                  : WeightType::kF32;
      return PackWeight(device_, *stream_, type, tensor.bytes.data(), rows,
                        cols);
    }
    const std::vector<float> wide = ToFloats(tensor);
    auto packed = PackWeight(device_, *stream_, WeightType::kF32, wide.data(),
                             rows, cols);
    stream_->Synchronize();
    return packed;
  }

  absl::StatusOr<EmbeddingTable> Embedding(const TensorView& tensor,
                                           const ModelConfig& config) {
    EmbeddingTable table;
    table.vocab = config.vocab_size;
    table.width = config.hidden_size;
    if (tensor.type == TensorType::kBf16) {
      table.type = WeightType::kBf16;
      FARKV_ASSIGN_OR_RETURN(table.data,
                             Upload(tensor.bytes.data(), tensor.bytes.size()));
    } else {
      table.type = WeightType::kF32;
      FARKV_ASSIGN_OR_RETURN(table.data, Upload(ToFloats(tensor)));
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

  const SafetensorsFile& file_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  int64_t num_parameters_ = 0;
};

absl::StatusOr<LayerWeights> LoadLayer(Loader& loader,
                                       const ModelConfig& config, int layer) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const int32_t hidden = config.hidden_size;
  const int32_t query_width = config.num_query_heads * config.head_dim;
  const int32_t kv_width = config.num_kv_heads * config.head_dim;
  const int32_t inner = config.intermediate_size;
  LayerWeights w;
  FARKV_ASSIGN_OR_RETURN(
      w.input_norm, loader.Vector(prefix + "input_layernorm.weight", hidden));
  FARKV_ASSIGN_OR_RETURN(
      w.post_norm,
      loader.Vector(prefix + "post_attention_layernorm.weight", hidden));
  const std::string self = prefix + "self_attn.";
  if (config.qk_norm) {
    FARKV_ASSIGN_OR_RETURN(
        w.query_norm, loader.Vector(self + "q_norm.weight", config.head_dim));
    FARKV_ASSIGN_OR_RETURN(
        w.key_norm, loader.Vector(self + "k_norm.weight", config.head_dim));
  }
  FARKV_ASSIGN_OR_RETURN(
      w.query, loader.Matrix(self + "q_proj.weight", query_width, hidden));
  FARKV_ASSIGN_OR_RETURN(
      w.key, loader.Matrix(self + "k_proj.weight", kv_width, hidden));
  FARKV_ASSIGN_OR_RETURN(
      w.value, loader.Matrix(self + "v_proj.weight", kv_width, hidden));
  FARKV_ASSIGN_OR_RETURN(
      w.output, loader.Matrix(self + "o_proj.weight", hidden, query_width));
  const std::string mlp = prefix + "mlp.";
  FARKV_ASSIGN_OR_RETURN(
      w.gate, loader.Matrix(mlp + "gate_proj.weight", inner, hidden));
  FARKV_ASSIGN_OR_RETURN(w.up,
                         loader.Matrix(mlp + "up_proj.weight", inner, hidden));
  FARKV_ASSIGN_OR_RETURN(
      w.down, loader.Matrix(mlp + "down_proj.weight", hidden, inner));
  return w;
}

}  // namespace

absl::StatusOr<ModelWeights> ModelWeights::Load(const std::string& directory,
                                                const ModelConfig& config,
                                                Device& device) {
  FARKV_ASSIGN_OR_RETURN(
      const auto file,
      SafetensorsFile::Open(absl::StrCat(directory, "/model.safetensors")));
  const std::string surplus = absl::StrCat("model.layers.", config.num_layers,
                                           ".input_layernorm.weight");
  if (file->Contains(surplus)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", file->path(), "\" has a tensor ", surplus,
        ", config.json has num_hidden_layers ", config.num_layers));
  }
  Loader loader(*file, device);
  ModelWeights weights;
  FARKV_ASSIGN_OR_RETURN(const TensorView embedding,
                         file->Find("model.embed_tokens.weight",
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

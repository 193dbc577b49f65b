#include "gpu_worker/checkpoint/gguf_tensors.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

struct NamePair {
  absl::string_view hugging_face;
  absl::string_view gguf;
};
constexpr NamePair kWholeNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"rope_freqs.weight", "rope_freqs.weight"},
};
// Behind "model.layers.N." and "blk.N.", without ".weight" or ".bias".
constexpr NamePair kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

// Rows of each head from (pair, half) to (half, pair) order.
absl::StatusOr<TensorView> MoveRowsBack(TensorView view, int64_t heads) {
  const int64_t rows = view.shape[0];
  const int64_t pairs = rows / heads / 2;
  if (pairs * 2 * heads != rows ||
      (view.shape.size() == 1 && GroupElements(view.type) != 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", ShapeText(view.shape), " of ", TensorTypeName(view.type),
        " is not that of ", heads, " heads of pairs of rows"));
  }
  const size_t row_bytes = view.bytes.size() / static_cast<size_t>(rows);
  auto moved = std::make_shared<std::vector<std::byte>>(view.bytes.size());
  std::byte* to = moved->data();
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t half = 0; half < 2; ++half) {
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const int64_t from = (head * pairs + pair) * 2 + half;
        std::memcpy(to,
                    view.bytes.data() + static_cast<size_t>(from) * row_bytes,
                    row_bytes);
        to += row_bytes;
      }
    }
  }
  view.bytes = *moved;
  view.owner = std::move(moved);
  return view;
}

}  // namespace

std::optional<std::string> GgufTensorName(const std::string& name) {
  for (const NamePair& pair : kWholeNames) {
    if (name == pair.hugging_face) return std::string(pair.gguf);
  }
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "model.layers.")) return std::nullopt;
  const absl::string_view layer = rest.substr(0, rest.find('.'));
  uint32_t number = 0;
  if (!absl::SimpleAtoi(layer, &number) || absl::StrCat(number) != layer) {
    return std::nullopt;
  }
  rest.remove_prefix(layer.size());
  for (const NamePair& pair : kLayerNames) {
    for (const char* suffix : {".weight", ".bias"}) {
      if (rest == absl::StrCat(".", pair.hugging_face, suffix)) {
        return absl::StrCat("blk.", number, ".", pair.gguf, suffix);
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<GgufTensors>> GgufTensors::Create(
    std::shared_ptr<const GgufFile> file) {
  FARKV_ASSIGN_OR_RETURN(const auto architecture,
                         file->String("general.architecture"));
  if (file->Has("split.count")) {
    FARKV_ASSIGN_OR_RETURN(const int64_t files, file->Integer("split.count"));
    if (files > 1) {
      return absl::UnimplementedError(
          absl::StrCat("\"", file->path(), "\" is one of ", files,
                       " files of a split model; only whole ones are read"));
    }
  }
  auto source = std::unique_ptr<GgufTensors>(new GgufTensors(std::move(file)));
  if (architecture == "llama") {
    FARKV_RETURN_IF_ERROR(source->ReadHeads(std::string(architecture)));
  }
  return source;
}

absl::Status GgufTensors::ReadHeads(const std::string& architecture) {
  const std::string key = absl::StrCat(architecture, ".attention.head_count");
  const std::string kv_key = absl::StrCat(key, "_kv");
  FARKV_ASSIGN_OR_RETURN(query_heads_, file_->Integer(key));
  kv_heads_ = query_heads_;
  if (file_->Has(kv_key)) {
    FARKV_ASSIGN_OR_RETURN(kv_heads_, file_->Integer(kv_key));
  }
  constexpr int64_t kMaxHeads = int64_t{1} << 30;
  if (query_heads_ >= 1 && kv_heads_ >= 1 && query_heads_ <= kMaxHeads &&
      kv_heads_ <= kMaxHeads) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", file_->path(), "\": ", key, " is ", query_heads_, ", ",
                   kv_key, " ", kv_heads_));
}

int64_t GgufTensors::MovedHeads(const std::string& name) const {
  if (absl::StrContains(name, ".self_attn.q_proj.")) return query_heads_;
  if (absl::StrContains(name, ".self_attn.k_proj.")) return kv_heads_;
  return 0;
}

absl::StatusOr<TensorView> GgufTensors::Find(
    const std::string& name, const std::vector<int64_t>& shape) const {
  const auto stored_name = GgufTensorName(name);
  const auto found = stored_name.has_value()
                         ? file_->tensors().find(*stored_name)
                         : file_->tensors().end();
  if (found == file_->tensors().end()) {
    return absl::NotFoundError(absl::StrCat("\"", path(), "\" has no tensor ",
                                            stored_name.value_or("for"), " (",
                                            name, ")"));
  }
  const GgufTensor& tensor = found->second;
  const std::string label = absl::StrCat(*stored_name, " (", name, ")");
  FARKV_RETURN_IF_ERROR(CheckShape(path(), label, tensor.shape, shape));
  const auto type = GgufTensorType(tensor.type);
  if (!type.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        "\"", path(), "\": tensor ", label, " is stored as ",
        GgufTypeName(tensor.type),
        "; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K are read"));
  }
  TensorView view{*type, tensor.shape, tensor.bytes, nullptr};
  const int64_t heads = MovedHeads(name);
  if (heads == 0) return view;
  auto moved = MoveRowsBack(std::move(view), heads);
  if (moved.ok()) return moved;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", path(), "\": tensor ", label, ": ", moved.status().message()));
}

std::optional<std::string> GgufTensors::FindUnused(
    const std::set<std::string>& used) const {
  std::set<std::string> stored;
  for (const std::string& name : used) {
    if (auto place = GgufTensorName(name)) stored.insert(*std::move(place));
  }
  for (const auto& [name, tensor] : file_->tensors()) {
    if (!stored.contains(name)) return std::string(name);
  }
  return std::nullopt;
}

}  // namespace farkv

#include "gpu_worker/model/decoder.h"

#include <cmath>

#include "common/base/status_macros.h"

namespace farkv {
namespace {

const float* Floats(const DeviceBuffer& buffer) {
  return reinterpret_cast<const float*>(buffer.data());
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, const ModelWeights& weights,
                 DType kv_dtype, Limits limits)
    : config_(config),
      weights_(&weights),
      geometry_(config.Geometry(kv_dtype)),
      limits_(limits),
      base_frequencies_(RopeFrequencies(config.rope_theta, config.head_dim,
                                        config.rope_scaling, 0)),
      frequencies_(base_frequencies_) {}

absl::StatusOr<Decoder> Decoder::Create(const ModelConfig& config,
                                        const ModelWeights& weights,
                                        DType kv_dtype, Limits limits,
                                        Device& device) {
  Decoder decoder(config, weights, kv_dtype, limits);
  FARKV_RETURN_IF_ERROR(decoder.AllocateScratch(device));
  return decoder;
}

absl::Status Decoder::AllocateScratch(Device& device) {
  const int32_t query_width = config_.num_query_heads * config_.head_dim;
  const int32_t kv_width = config_.num_kv_heads * config_.head_dim;
  const struct {
    Scratch* scratch;
    int32_t rows, width;
  } wanted[] = {{&hidden_, limits_.rows, config_.hidden_size},
                {&normed_, limits_.rows, config_.hidden_size},
                {&query_, limits_.rows, query_width},
                {&key_, limits_.rows, kv_width},
                {&value_, limits_.rows, kv_width},
                {&attended_, limits_.rows, query_width},
                {&gate_, limits_.rows, config_.intermediate_size},
                {&up_, limits_.rows, config_.intermediate_size},
                {&logits_, limits_.logit_rows, config_.vocab_size}};
  for (const auto& [scratch, rows, width] : wanted) {
    const size_t bytes =
        static_cast<size_t>(rows) * static_cast<size_t>(width) * sizeof(float);
    FARKV_ASSIGN_OR_RETURN(scratch->buffer, device.Allocate(bytes));
  }
  return absl::OkStatus();
}

absl::Status Decoder::Step(Stream& stream, const DecoderInput& input,
                           LayerKvSource source, std::vector<float>& logits) {
  PrepareRope(input);
  Embed(stream, weights_->embedding, input.tokens, hidden_.data());
  for (int layer = 0; layer < config_.num_layers; ++layer) {
    if (absl::Status s = RunLayer(stream, layer, input, source); !s.ok()) {
      stream.Synchronize();
      return s;
    }
  }
  ComputeLogits(stream, input, logits);
  stream.Synchronize();
  return absl::OkStatus();
}

// With dynamic scaling a row is rotated as the last one of a sequence that ends
// with it, so that its bits do not depend on the rows beside it.
void Decoder::PrepareRope(const DecoderInput& input) {
  const RopeScaling& scaling = config_.rope_scaling;
  if (scaling.kind != RopeScaling::Kind::kDynamic) return;
  frequencies_.clear();
  for (const int64_t position : input.positions) {
    const std::vector<double>& row =
        position < scaling.original_max_position
            ? base_frequencies_
            : RopeFrequencies(config_.rope_theta, config_.head_dim, scaling,
                              position + 1);
    frequencies_.insert(frequencies_.end(), row.begin(), row.end());
  }
}

void Decoder::Project(Stream& stream, const Scratch& in, int32_t rows,
                      std::initializer_list<Projection> projections) {
  std::vector<MatMulOutput> outputs;
  for (const Projection& p : projections) {
    outputs.push_back({&p.weight, p.out.data()});
  }
  MatMul(stream, in.data(), rows, outputs);
  for (const Projection& p : projections) {
    if (p.bias.size() == 0) continue;
    AddBias(stream, p.out.data(), Floats(p.bias), rows, p.weight.rows);
  }
}

// Queries, keys and values of the layer, normed and rotated.
void Decoder::ProjectHeads(Stream& stream, int layer,
                           const DecoderInput& input) {
  const LayerWeights& w = weights_->layers[static_cast<size_t>(layer)];
  const auto rows = static_cast<int32_t>(input.tokens.size());
  RmsNorm(stream, hidden_.data(), Floats(w.input_norm),
          config_.rms_norm_epsilon, rows, config_.hidden_size, normed_.data());
  Project(stream, normed_, rows,
          {{w.query, w.query_bias, query_},
           {w.key, w.key_bias, key_},
           {w.value, w.value_bias, value_}});
  if (config_.qk_norm) {
    RmsNorm(stream, query_.data(), Floats(w.query_norm),
            config_.rms_norm_epsilon, rows * config_.num_query_heads,
            config_.head_dim, query_.data());
    RmsNorm(stream, key_.data(), Floats(w.key_norm), config_.rms_norm_epsilon,
            rows * config_.num_kv_heads, config_.head_dim, key_.data());
  }
  const double factor = config_.rope_scaling.attention_factor;
  Rope(stream, query_.data(), input.positions, frequencies_,
       config_.num_query_heads, config_.head_dim, factor);
  Rope(stream, key_.data(), input.positions, frequencies_, config_.num_kv_heads,
       config_.head_dim, factor);
}

absl::Status Decoder::RunLayer(Stream& stream, int layer,
                               const DecoderInput& input,
                               LayerKvSource source) {
  const LayerWeights& w = weights_->layers[static_cast<size_t>(layer)];
  const auto rows = static_cast<int32_t>(input.tokens.size());
  ProjectHeads(stream, layer, input);
  FARKV_ASSIGN_OR_RETURN(const LayerKv kv, source(layer));
  AppendRows(stream, geometry_, key_.data(), value_.data(), kv.targets);
  AttentionArgs args;
  args.geometry = geometry_;
  args.num_query_heads = config_.num_query_heads;
  args.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  args.queries = query_.data();
  args.out = attended_.data();
  args.sequences = kv.sequences;
  if (kv.on_queries) {
    FARKV_RETURN_IF_ERROR(SendQueries(stream, rows, args.scale, kv));
  }
  Attention(stream, args);
  Project(stream, attended_, rows, {{w.output, w.output_bias, normed_}});
  Add(stream, hidden_.data(), normed_.data(),
      int64_t{rows} * config_.hidden_size);
  RunMlp(stream, w, rows);
  return absl::OkStatus();
}

absl::Status Decoder::SendQueries(Stream& stream, int32_t rows, float scale,
                                  const LayerKv& kv) {
  host_queries_.resize(static_cast<size_t>(rows) *
                       static_cast<size_t>(config_.num_query_heads) *
                       static_cast<size_t>(config_.head_dim));
  stream.Copy(host_queries_.data(), query_.data(),
              host_queries_.size() * sizeof(float));
  stream.Synchronize();
  return kv.on_queries(host_queries_.data(), scale);
}

void Decoder::RunMlp(Stream& stream, const LayerWeights& w, int32_t rows) {
  RmsNorm(stream, hidden_.data(), Floats(w.post_norm), config_.rms_norm_epsilon,
          rows, config_.hidden_size, normed_.data());
  Project(stream, normed_, rows,
          {{w.gate, w.gate_bias, gate_}, {w.up, w.up_bias, up_}});
  SiluMultiply(stream, gate_.data(), up_.data(),
               int64_t{rows} * config_.intermediate_size, gate_.data());
  Project(stream, gate_, rows, {{w.down, w.down_bias, normed_}});
  Add(stream, hidden_.data(), normed_.data(),
      int64_t{rows} * config_.hidden_size);
}

void Decoder::ComputeLogits(Stream& stream, const DecoderInput& input,
                            std::vector<float>& logits) {
  const auto rows = static_cast<int32_t>(input.logit_rows.size());
  const auto width = static_cast<size_t>(config_.hidden_size);
  logits.resize(static_cast<size_t>(rows) *
                static_cast<size_t>(config_.vocab_size));
  if (rows == 0) return;
  // `normed_` is free here: gather the wanted rows into it, norm in place.
  std::vector<CopyPiece> pieces;
  for (int32_t i = 0; i < rows; ++i) {
    const auto row =
        static_cast<size_t>(input.logit_rows[static_cast<size_t>(i)]);
    pieces.push_back({normed_.data() + static_cast<size_t>(i) * width,
                      hidden_.data() + row * width, width * sizeof(float)});
  }
  CopyPieces(stream, pieces);
  RmsNorm(stream, normed_.data(), Floats(weights_->final_norm),
          config_.rms_norm_epsilon, rows, config_.hidden_size, normed_.data());
  MatMul(stream, normed_.data(), rows, weights_->logits, logits_.data());
  stream.Copy(logits.data(), logits_.data(), logits.size() * sizeof(float));
}

}  // namespace farkv

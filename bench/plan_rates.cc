#include "bench/plan_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "bench/paired.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "gpu_worker/model/model_files.h"
#include "gpu_worker/model/weights.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/stream.h"

namespace farkv::bench {
namespace {

double SecondsOf(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// Every product of a step, in its order.
std::vector<const PackedWeight*> ProductsOf(const ModelWeights& weights) {
  std::vector<const PackedWeight*> products;
  for (const LayerWeights& layer : weights.layers) {
    for (const PackedWeight* weight :
         {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
          &layer.up, &layer.down}) {
      products.push_back(weight);
    }
  }
  products.push_back(&weights.logits);
  return products;
}

class Products {
 public:
  Products(const ModelWeights& weights, int rows, Stream& stream)
      : products_(ProductsOf(weights)), rows_(rows), stream_(stream) {
    size_t in = 0, out = 0;
    for (const PackedWeight* weight : products_) {
      in = std::max(in, static_cast<size_t>(weight->cols));
      out = std::max(out, static_cast<size_t>(weight->rows));
      bytes_ += weight->data.size();
    }
    in_.assign(in * static_cast<size_t>(rows), 0.5f);
    out_.resize(out * static_cast<size_t>(rows));
  }
  double Run() {
    return SecondsOf([this] {
      for (const PackedWeight* weight : products_) {
        MatMul(stream_, in_.data(), rows_, *weight, out_.data());
      }
      stream_.Synchronize();
    });
  }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::vector<const PackedWeight*> products_;
  const int32_t rows_;
  Stream& stream_;
  uint64_t bytes_ = 0;
  std::vector<float> in_, out_;
};

// As pages and lines are aligned.
struct alignas(64) CacheLine {
  uint16_t elements[32];
};

// One decode step's attention of every layer over rows of its own.
class StepAttention {
 public:
  StepAttention(const ModelConfig& config, const KernelOptions& options,
                Stream& stream)
      : geometry_(config.Geometry(DType::kBf16)),
        query_heads_(config.num_query_heads),
        tokens_(options.tokens / kPageTokens * kPageTokens),
        batch_(options.batch),
        stream_(stream),
        live_(static_cast<size_t>(geometry_.num_kv_heads), ~uint64_t{0}),
        scores_(static_cast<size_t>(tokens_ * batch_)) {
    const size_t rows = static_cast<size_t>(batch_ * query_heads_) *
                        static_cast<size_t>(geometry_.head_dim);
    queries_.assign(rows, 0.1f);
    out_.resize(rows);
    AddPages();
  }

  double Run() {
    return SecondsOf([this] {
      for (int layer = 0; layer < geometry_.num_layers; ++layer) {
        RunLayer(static_cast<size_t>(layer));
      }
      stream_.Synchronize();
    });
  }
  uint64_t bytes() const { return memory_.size() * sizeof(CacheLine); }

 private:
  size_t PagesOfSequence() const {
    return static_cast<size_t>(tokens_ / kPageTokens);
  }

  void AddPages() {
    const size_t pages = PagesOfSequence() * static_cast<size_t>(batch_) *
                         static_cast<size_t>(geometry_.num_layers);
    const size_t lines = geometry_.BlockBytes(kPageTokens) / sizeof(CacheLine);
    memory_.resize(pages * lines);
    for (size_t i = 0; i < memory_.size(); ++i) {
      for (uint16_t& element : memory_[i].elements) {
        // Small positive bf16 numbers.
        element = static_cast<uint16_t>(0x3d00 + (SplitMix64Mix(i) & 0xff));
      }
    }
    runs_.resize(pages);
    pages_.resize(pages);
    for (size_t i = 0; i < pages; ++i) {
      const auto* base =
          reinterpret_cast<const std::byte*>(memory_.data() + i * lines);
      runs_[i] = {.keys = base,
                  .values = base + geometry_.ValueOffset(kPageTokens, 0, 0),
                  .head_stride = geometry_.HeadStride(kPageTokens),
                  .first_slot = 0,
                  .length = kPageTokens,
                  .source = RunSource::kT0Line};
      pages_[i] = {.page_index = static_cast<int32_t>(i % PagesOfSequence()),
                   .live = live_.data(),
                   .runs = {&runs_[i], 1}};
    }
  }

  void RunLayer(size_t layer) {
    std::vector<AttentionSequence> sequences(static_cast<size_t>(batch_));
    for (size_t i = 0; i < sequences.size(); ++i) {
      AttentionSequence& sequence = sequences[i];
      sequence.first_row = static_cast<int32_t>(i);
      sequence.num_rows = 1;
      sequence.first_position = tokens_ - 1;
      sequence.pages = std::span(pages_).subspan(
          (layer * sequences.size() + i) * PagesOfSequence(),
          PagesOfSequence());
      sequence.scores = std::span(scores_).subspan(
          i * static_cast<size_t>(tokens_), static_cast<size_t>(tokens_));
    }
    AttentionArgs args;
    args.geometry = geometry_;
    args.num_query_heads = query_heads_;
    args.scale = 1.0f / std::sqrt(static_cast<float>(geometry_.head_dim));
    args.queries = queries_.data();
    args.out = out_.data();
    args.sequences = sequences;
    Attention(stream_, args);
  }

  const KvGeometry geometry_;
  const int32_t query_heads_;
  const int64_t tokens_;
  const int batch_;
  Stream& stream_;
  std::vector<CacheLine> memory_;  // [layer][sequence][page]
  std::vector<uint64_t> live_;
  std::vector<::farkv::Run> runs_;
  std::vector<PageRuns> pages_;
  std::vector<float> queries_, out_;
  std::vector<int64_t> scores_;
};

}  // namespace

ModelShape ShapeOf(const ModelConfig& config) {
  return {config.num_layers, config.num_query_heads, config.num_kv_heads,
          config.head_dim,   config.hidden_size,     config.intermediate_size,
          config.vocab_size};
}

absl::StatusOr<Rates> MeasureKernels(const KernelOptions& options) {
  ThreadPool pool(options.threads);
  FARKV_ASSIGN_OR_RETURN(const auto device, OpenDevice("cpu", pool));
  const auto stream = device->NewStream();
  FARKV_ASSIGN_OR_RETURN(const ModelFiles files,
                         ModelFiles::Open(options.model));
  FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
  FARKV_ASSIGN_OR_RETURN(const auto tensors, files.OpenTensorSource());
  FARKV_ASSIGN_OR_RETURN(const ModelWeights weights,
                         ModelWeights::Load(*tensors, config, *device));
  Products products(weights, options.batch, *stream);
  StepAttention attention(config, options, *stream);
  const Contender contenders[] = {[&] { return products.Run(); },
                                  [&] { return attention.Run(); }};
  const auto seconds = RunRounds(options.rounds, contenders);
  Rates rates;
  rates.weight_bytes = products.bytes();
  rates.weight_bytes_per_second =
      static_cast<double>(products.bytes()) / Median(seconds[0]);
  rates.flops_per_second = 1e18;
  rates.attention_bytes_per_second =
      static_cast<double>(attention.bytes()) / Median(seconds[1]);
  rates.mapped_bytes_per_second = rates.attention_bytes_per_second;
  return rates;
}

}  // namespace farkv::bench

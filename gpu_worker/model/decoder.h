// The forward pass of a decoder-only transformer over new rows of any number
// of sequences. A row's bits depend on that row and its sequence's KV rows
// only, never on the company in the batch (DESIGN 5.1).
//
// Goals: one code for prefill and decode; the KV cache stays behind a
// callback. Non-goals: sampling, scheduling.
//
// Thread-compatible: one thread calls Step.
#ifndef FARKV_GPU_WORKER_MODEL_DECODER_H_
#define FARKV_GPU_WORKER_MODEL_DECODER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/model/weights.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/stream.h"

namespace farkv {

// Where a layer's new rows go and what its attention reads; borrowed until the
// next call or until the stream is synchronised, whichever is later.
struct LayerKv {
  std::span<const RowTarget> targets;            // one per row
  std::span<const AttentionSequence> sequences;  // cover all rows in order
  // Not empty: wants the layer's queries before attention is enqueued, f32
  // [rows][query heads][head_dim] in host memory, and attention's scale.
  std::function<absl::Status(const float* queries, float scale)> on_queries;
};
using LayerKvSource = absl::FunctionRef<absl::StatusOr<LayerKv>(int layer)>;

struct DecoderInput {
  std::span<const int32_t> tokens;     // one per row, range-checked
  std::span<const int64_t> positions;  // absolute, one per row
  // Rows whose logits are wanted, ascending.
  std::span<const int32_t> logit_rows;
};

class Decoder {
 public:
  // Bounds of a step: its rows, and those whose logits are wanted (a vocabulary
  // makes rows of 600 KB).
  struct Limits {
    int32_t rows = 0;
    int32_t logit_rows = 0;
  };
  // `weights` must outlive the decoder.
  static absl::StatusOr<Decoder> Create(const ModelConfig& config,
                                        const ModelWeights& weights,
                                        DType kv_dtype, Limits limits,
                                        Device& device);

  // Runs all layers and waits for the stream. `logits` becomes
  // [logit_rows][vocab_size], host memory. Errors are those of `source`.
  absl::Status Step(Stream& stream, const DecoderInput& input,
                    LayerKvSource source, std::vector<float>& logits);

  int32_t max_rows() const { return limits_.rows; }
  int32_t max_logit_rows() const { return limits_.logit_rows; }

 private:
  // Activations, f32 device memory, [rows][width].
  struct Scratch {
    DeviceBuffer buffer;
    float* data() const { return reinterpret_cast<float*>(buffer.data()); }
  };

  Decoder(const ModelConfig& config, const ModelWeights& weights,
          DType kv_dtype, Limits limits);
  absl::Status AllocateScratch(Device& device);
  absl::Status RunLayer(Stream& stream, int layer, const DecoderInput& input,
                        LayerKvSource source);
  // Sets frequencies_ for the rows of a step where they depend on it.
  void PrepareRope(const DecoderInput& input);
  struct Projection {
    const PackedWeight& weight;
    const DeviceBuffer& bias;  // may be empty
    Scratch& out;
  };
  // Projections of the same rows, in one go.
  void Project(Stream& stream, const Scratch& in, int32_t rows,
               std::initializer_list<Projection> projections);
  void ProjectHeads(Stream& stream, int layer, const DecoderInput& input);
  absl::Status SendQueries(Stream& stream, int32_t rows, float scale,
                           const LayerKv& kv);
  void RunMlp(Stream& stream, const LayerWeights& weights, int32_t rows);
  void ComputeLogits(Stream& stream, const DecoderInput& input,
                     std::vector<float>& logits);

  ModelConfig config_;
  const ModelWeights* weights_;
  KvGeometry geometry_;
  Limits limits_;
  // Of pairs of a head: those of any row, or [rows][head_dim / 2] of a step.
  std::vector<double> base_frequencies_;
  std::vector<double> frequencies_;

  std::vector<float> host_queries_;
  Scratch hidden_, normed_, query_, key_, value_, attended_, gate_, up_,
      logits_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_DECODER_H_

// Drives a KvCache as an engine does, with made-up keys, values and queries
// that depend on (sequence, layer, position) alone. Two caches driven alike
// must give the same bits.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_TIERING_HARNESS_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_TIERING_HARNESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "common/base/random.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/stream.h"

namespace farkv {

inline constexpr int kQueryHeads = 4;

inline KvGeometry TestGeometry(DType dtype = DType::kBf16) {
  return {.num_layers = 3, .num_kv_heads = 2, .head_dim = 16, .dtype = dtype};
}

inline SequenceSpec TestSpec(int granularity, int64_t prompt, int64_t total,
                             const char* name = "request") {
  SequenceSpec spec;
  spec.session = SessionId::Random();
  spec.request_id = name;
  spec.prompt_tokens = prompt;
  spec.max_tokens = total;
  spec.placement.granularity = granularity;
  spec.placement.interval = 16;
  spec.placement.recent = 32;
  spec.placement.hbm_ratio = 3000;
  return spec;
}

// `count` rows of `width` numbers in (-1, 1).
inline std::vector<float> Numbers(uint64_t seed, int layer, int64_t position,
                                  int count, int width) {
  std::vector<float> numbers;
  for (int r = 0; r < count; ++r) {
    for (int i = 0; i < width; ++i) {
      const uint64_t draw =
          CounterDraw(seed, {static_cast<uint64_t>(layer),
                             static_cast<uint64_t>(position + r),
                             static_cast<uint64_t>(i)});
      numbers.push_back(static_cast<float>(2 * ToUnit(draw) - 1));
    }
  }
  return numbers;
}

struct Batch {
  SequenceId sequence;
  int rows = 0;
  std::vector<int64_t> lost = {};  // their positions, when they are lost ones
};

class Harness {
 public:
  Harness(KvCache& cache, Stream& stream, const KvGeometry& geometry,
          int query_heads = kQueryHeads)
      : cache_(cache),
        stream_(stream),
        geometry_(geometry),
        query_heads_(query_heads) {}

  // One step over `batch`; attention outputs of all layers go to outputs(). A
  // full T0 is waited for as long as there is something to wait for.
  // On failure the step is discarded.
  absl::Status Step(std::vector<Batch> batch) {
    std::vector<StepRows> rows;
    for (const Batch& b : batch) rows.push_back({b.sequence, b.rows});
    std::vector<int64_t> first;
    for (const Batch& b : batch) first.push_back(cache_.num_tokens(b.sequence));
    absl::Status status = cache_.Begin(rows, stream_);
    const absl::Time end = absl::Now() + room_wait;
    while (absl::IsResourceExhausted(status) && absl::Now() < end &&
           cache_.WaitForRoom(end - absl::Now())) {
      status = cache_.Begin(rows, stream_);
    }
    if (!status.ok()) return status;
    std::vector<std::vector<float>> outputs;
    for (int layer = 0; layer < geometry_.num_layers; ++layer) {
      absl::StatusOr<LayerView> view = cache_.PrepareLayer(layer);
      if (!view.ok()) {
        cache_.Discard();
        return view.status();
      }
      absl::StatusOr<std::vector<float>> out =
          RunLayer(layer, batch, first, *view);
      if (!out.ok()) {
        cache_.Discard();
        return out.status();
      }
      outputs.push_back(*std::move(out));
    }
    stream_.Synchronize();
    status = cache_.Commit(is_moot);
    if (status.ok()) outputs_.push_back(outputs);
    return status;
  }

  absl::Status Step(SequenceId sequence, int rows) {
    return Step({{sequence, rows}});
  }

  // For how long a step waits for room in T0.
  absl::Duration room_wait = absl::Seconds(20);
  // For Commit.
  std::function<bool()> is_moot;

  // [step][layer] -> values.
  const std::vector<std::vector<std::vector<float>>>& outputs() const {
    return outputs_;
  }

 private:
  // Inputs live on the device until the step is over; the fake device may read
  // them late.
  const float* Upload(const std::vector<float>& values) {
    kept_.push_back(std::make_shared<std::vector<float>>(values));
    return kept_.back()->data();
  }

  absl::StatusOr<std::vector<float>> RunLayer(int layer,
                                              const std::vector<Batch>& batch,
                                              const std::vector<int64_t>& first,
                                              const LayerView& view) {
    const int kv_width = geometry_.num_kv_heads * geometry_.head_dim;
    const int q_width = query_heads_ * geometry_.head_dim;
    std::vector<float> k, v, q;
    for (size_t i = 0; i < batch.size(); ++i) {
      const uint64_t seed = 3 * batch[i].sequence.value;
      const auto add = [&](std::vector<float>& to, uint64_t kind, int width) {
        for (int r = 0; r < batch[i].rows; ++r) {
          const int64_t position = batch[i].lost.empty()
                                       ? first[i] + r
                                       : batch[i].lost[static_cast<size_t>(r)];
          const auto more = Numbers(seed + kind, layer, position, 1, width);
          to.insert(to.end(), more.begin(), more.end());
        }
      };
      add(k, 0, kv_width);
      add(v, 1, kv_width);
      add(q, 2, q_width);
    }
    if (view.needs_queries) {
      const absl::Status sent = cache_.SendQueries(layer, q.data(), 0.25f);
      if (!sent.ok()) return sent;
    }
    AppendRows(stream_, geometry_, Upload(k), Upload(v), view.targets);
    std::vector<float> out(q.size());
    AttentionArgs args;
    args.geometry = geometry_;
    args.num_query_heads = query_heads_;
    args.scale = 0.25f;
    args.queries = Upload(q);
    args.out = out.data();
    args.sequences = view.sequences;
    Attention(stream_, args);
    stream_.Synchronize();
    return out;
  }

  KvCache& cache_;
  Stream& stream_;
  const KvGeometry geometry_;
  const int query_heads_;
  std::vector<std::shared_ptr<std::vector<float>>> kept_;
  std::vector<std::vector<std::vector<float>>> outputs_;
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_TIERING_HARNESS_H_

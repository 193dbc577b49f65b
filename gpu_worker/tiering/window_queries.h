// The last queries of a sequence, for the policies that rank rows by attention
// from a window (SnapKV, R-KV, VaSE-AttnV). Thread-compatible.
#ifndef FARKV_GPU_WORKER_TIERING_WINDOW_QUERIES_H_
#define FARKV_GPU_WORKER_TIERING_WINDOW_QUERIES_H_

#include <cstdint>
#include <vector>

#include "common/layout/kv_geometry.h"
#include "common/policy/eviction_input.h"

namespace farkv {

// A ring for each layer. A position that is added twice, because its step was
// repeated, has the same query both times.
class QueryRing {
 public:
  QueryRing() = default;  // keeps nothing
  // Keeps the last `window` positions.
  QueryRing(const KvGeometry& geometry, int num_query_heads, int window);

  int window() const { return window_; }
  // f32 [count][query heads][head_dim], of the positions from `first` on;
  // `scale` as attention applies it. Nothing when the ring keeps nothing.
  void Add(int layer, int64_t first, int count, const float* queries,
           float scale);

  // The queries that read `kv_head` of the last positions below `num_tokens`:
  // as many as the window has, or as there are tokens; they must have been
  // added. Its span is in `data`, which is overwritten.
  WindowQueries Window(int layer, int kv_head, int64_t num_tokens,
                       std::vector<float>& data) const;

 private:
  size_t row_floats() const {
    return static_cast<size_t>(num_query_heads_) *
           static_cast<size_t>(head_dim_);
  }

  int window_ = 0;
  int num_query_heads_ = 0;
  int num_kv_heads_ = 1;
  int head_dim_ = 0;
  float scale_ = 0;
  // [layer] -> [position mod window][query heads][head_dim].
  std::vector<std::vector<float>> layers_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_WINDOW_QUERIES_H_

#include "gpu_worker/tiering/window_queries.h"

#include <algorithm>

namespace farkv {

QueryRing::QueryRing(const KvGeometry& geometry, int num_query_heads,
                     int window)
    : window_(window),
      num_query_heads_(num_query_heads),
      num_kv_heads_(geometry.num_kv_heads),
      head_dim_(geometry.head_dim),
      layers_(static_cast<size_t>(geometry.num_layers)) {
  for (std::vector<float>& layer : layers_) {
    layer.resize(static_cast<size_t>(window) * row_floats());
  }
}

void QueryRing::Add(int layer, int64_t first, int count, const float* queries,
                    float scale) {
  if (window_ == 0) return;
  scale_ = scale;
  std::vector<float>& ring = layers_[static_cast<size_t>(layer)];
  for (int i = std::max(0, count - window_); i < count; ++i) {
    const auto place = static_cast<size_t>((first + i) % window_);
    std::copy_n(queries + static_cast<size_t>(i) * row_floats(), row_floats(),
                ring.data() + place * row_floats());
  }
}

WindowQueries QueryRing::Window(int layer, int kv_head, int64_t num_tokens,
                                std::vector<float>& data) const {
  const auto count = std::min<int64_t>(window_, num_tokens);
  const int group = num_query_heads_ / num_kv_heads_;
  const auto dim = static_cast<size_t>(head_dim_);
  const std::vector<float>& ring = layers_[static_cast<size_t>(layer)];
  data.clear();
  for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    for (int64_t position = num_tokens - count; position < num_tokens;
         ++position) {
      const auto place = static_cast<size_t>(position % window_);
      const float* from =
          ring.data() + place * row_floats() + static_cast<size_t>(h) * dim;
      data.insert(data.end(), from, from + dim);
    }
  }
  return {data, group, static_cast<int32_t>(count), scale_};
}

}  // namespace farkv

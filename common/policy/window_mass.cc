#include "common/policy/window_mass.h"

#include <algorithm>

#include "common/policy/panel_math.h"

namespace farkv {
namespace {

// Logits of the window's queries w of one head, [num_queries][padded].
std::vector<float> Logits(const WindowQueries& window, int32_t head,
                          const HeadPanels& keys) {
  std::vector<float> logits(static_cast<size_t>(window.num_queries) *
                            static_cast<size_t>(keys.padded()));
  const int64_t first = int64_t{head} * window.num_queries * keys.dim;
  MultiplyPanels(window.data.data() + first, window.num_queries, keys,
                 logits.data());
  for (float& logit : logits) logit = logit * window.scale;
  return logits;
}

// Adds the softmax over logits[0 .. visible) to sums[0 .. count).
void AddSoftmax(float* logits, int64_t visible, std::span<float> sums) {
  if (!SoftmaxInPlace(logits, visible)) return;
  for (size_t i = 0; i < sums.size() && static_cast<int64_t>(i) < visible;
       ++i) {
    sums[i] = sums[i] + logits[i];
  }
}

template <typename Visible>
std::vector<float> SumsPerHead(const WindowQueries& window,
                               const HeadPanels& keys, int64_t count,
                               Visible visible) {
  std::vector<float> sums(static_cast<size_t>(window.num_heads) *
                          static_cast<size_t>(count));
  for (int32_t head = 0; head < window.num_heads; ++head) {
    std::vector<float> logits = Logits(window, head, keys);
    const std::span<float> of_head = std::span<float>(sums).subspan(
        static_cast<size_t>(head * count), static_cast<size_t>(count));
    for (int32_t w = 0; w < window.num_queries; ++w) {
      AddSoftmax(logits.data() + w * keys.padded(), visible(w), of_head);
    }
  }
  return sums;
}

// The larger; NaN when one of them is.
float Larger(float a, float b) { return b > a || b != b ? b : a; }

}  // namespace

std::vector<float> CausalWindowSums(const WindowQueries& window,
                                    const HeadPanels& keys, int64_t count) {
  return SumsPerHead(window, keys, count, [&](int32_t w) {
    return keys.count - (window.num_queries - 1 - w);
  });
}

std::vector<float> CandidateWindowSums(const WindowQueries& window,
                                       const HeadPanels& keys, int64_t count) {
  return SumsPerHead(window, keys, count, [count](int32_t) { return count; });
}

std::vector<float> GroupMaxWindowSums(const WindowQueries& window,
                                      const HeadPanels& keys, int64_t count) {
  std::vector<float> sums(static_cast<size_t>(count));
  std::vector<float> largest = Logits(window, 0, keys);
  for (int32_t head = 1; head < window.num_heads; ++head) {
    const std::vector<float> logits = Logits(window, head, keys);
    for (size_t i = 0; i < logits.size(); ++i) {
      largest[i] = Larger(largest[i], logits[i]);
    }
  }
  for (int32_t w = 0; w < window.num_queries; ++w) {
    AddSoftmax(largest.data() + w * keys.padded(), count, sums);
  }
  return sums;
}

std::vector<float> PoolAverage(std::span<const float> in, int32_t kernel) {
  const auto count = static_cast<int64_t>(in.size());
  std::vector<float> out(in.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = std::max<int64_t>(0, i - kernel / 2);
    const int64_t end = std::min<int64_t>(count, i + kernel / 2 + 1);
    float sum = 0;
    for (int64_t j = begin; j < end; ++j) sum += in[static_cast<size_t>(j)];
    out[static_cast<size_t>(i)] = sum / static_cast<float>(kernel);
  }
  return out;
}

std::vector<float> PoolMax(std::span<const float> in, int32_t kernel) {
  const auto count = static_cast<int64_t>(in.size());
  std::vector<float> out(in.begin(), in.end());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = std::max<int64_t>(0, i - kernel / 2);
    const int64_t end = std::min<int64_t>(count, i + kernel / 2 + 1);
    for (int64_t j = begin; j < end; ++j) {
      out[static_cast<size_t>(i)] =
          Larger(out[static_cast<size_t>(i)], in[static_cast<size_t>(j)]);
    }
  }
  return out;
}

std::vector<float> MeanPooledMass(std::span<const float> sums,
                                  const WindowQueries& window, int32_t kernel) {
  const size_t count = sums.size() / static_cast<size_t>(window.num_heads);
  std::vector<float> mass(count);
  for (size_t head = 0; head < static_cast<size_t>(window.num_heads); ++head) {
    const std::vector<float> pooled =
        PoolAverage(sums.subspan(head * count, count), kernel);
    for (size_t i = 0; i < count; ++i) mass[i] += pooled[i];
  }
  const auto rows =
      static_cast<float>(int64_t{window.num_heads} * window.num_queries);
  for (float& m : mass) m = m / rows;
  return mass;
}

}  // namespace farkv

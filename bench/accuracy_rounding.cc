#include "bench/accuracy_rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/page/t2_codec.h"

namespace farkv::bench {
namespace {

float LoadElement(const KvGeometry& geometry, const std::byte* at) {
  return geometry.dtype == DType::kBf16
             ? Bf16ToFloat(LoadLe<uint16_t>(at))
             : std::bit_cast<float>(LoadLe<uint32_t>(at));
}

void StoreElement(const KvGeometry& geometry, float value, std::byte* at) {
  if (geometry.dtype == DType::kBf16) {
    StoreLe(at, FloatToBf16(value));
  } else {
    StoreLe(at, std::bit_cast<uint32_t>(value));
  }
}

size_t Heads(const KvGeometry& geometry) {
  return static_cast<size_t>(geometry.num_kv_heads);
}

// The 64 keys of a head, or with `values` its 64 values, in a block of a page.
size_t VectorsOffset(const KvGeometry& geometry, size_t head, bool values) {
  return values ? geometry.ValueOffset(kPageTokens, head, 0)
                : geometry.KeyOffset(kPageTokens, head, 0);
}

// The value that a share of the sorted numbers lies below.
double Quantile(const std::vector<float>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(std::lround(share * last))];
}

}  // namespace

double RoundingScheme::TokenBytes(const KvGeometry& geometry) const {
  const auto heads = static_cast<double>(geometry.num_kv_heads);
  double layer = 0;  // of a page
  if (kind == Kind::kNoExceptions) {
    layer = heads * static_cast<double>(
                        T2HeadLayout::Of(geometry, bits).exception_slots);
  } else {
    // Scale and minimum of the keys and of the values, in single precision.
    layer = heads * 2 * kPageTokens * geometry.head_dim * bits / 8 + 16;
  }
  return geometry.num_layers * layer / kPageTokens;
}

void RoundToOneRange(std::span<float> values, int bits) {
  if (values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float minimum = *low;
  const auto top = static_cast<float>((1 << bits) - 1);
  const float scale = (*high - minimum) / top;
  for (float& value : values) {
    const float code =
        scale == 0.0f ? 0.0f : std::nearbyintf((value - minimum) / scale);
    value = std::clamp(code, 0.0f, top) * scale + minimum;
  }
}

void RowRounding::Apply(std::span<std::byte> rows) {
  absl::Status status;
  const size_t bytes = geometry_.BlockBytes(kPageTokens);
  for (size_t at = 0; at < rows.size(); at += bytes) {
    status.Update(RoundLayer(rows.subspan(at, bytes)));
  }
  absl::MutexLock lock(&mutex_);
  ++num_pages_;
  status_.Update(status);
}

absl::Status RowRounding::RoundLayer(std::span<std::byte> block) const {
  if (scheme_.kind == RoundingScheme::Kind::kNoExceptions) {
    return RoundHeads(block);
  }
  RoundTensors(block);
  return absl::OkStatus();
}

absl::Status RowRounding::RoundHeads(std::span<std::byte> block) const {
  constexpr uint64_t kAll = ~uint64_t{0};
  std::vector<std::byte> part(
      T2HeadLayout::Of(geometry_, scheme_.bits).head_bytes);
  for (size_t head = 0; head < Heads(geometry_); ++head) {
    std::byte* keys = block.data() + VectorsOffset(geometry_, head, false);
    std::byte* values = block.data() + VectorsOffset(geometry_, head, true);
    FARKV_RETURN_IF_ERROR(EncodeT2Head(geometry_, scheme_.bits, {keys, values},
                                       kAll, /*exceptions=*/0, part));
    FARKV_RETURN_IF_ERROR(
        DecodeT2Head(geometry_, scheme_.bits, part, kAll, keys, values));
  }
  return absl::OkStatus();
}

void RowRounding::RoundTensors(std::span<std::byte> block) const {
  const size_t elements =
      size_t{kPageTokens} * static_cast<size_t>(geometry_.head_dim);
  const size_t element_bytes = geometry_.ElementBytes();
  std::vector<float> tensor(Heads(geometry_) * elements);
  for (const bool values : {false, true}) {
    const auto place = [&](size_t i) {
      return block.data() + VectorsOffset(geometry_, i / elements, values) +
             i % elements * element_bytes;
    };
    for (size_t i = 0; i < tensor.size(); ++i) {
      tensor[i] = LoadElement(geometry_, place(i));
    }
    RoundToOneRange(tensor, scheme_.bits);
    for (size_t i = 0; i < tensor.size(); ++i) {
      StoreElement(geometry_, tensor[i], place(i));
    }
  }
}

int64_t RowRounding::num_pages() const {
  absl::MutexLock lock(&mutex_);
  return num_pages_;
}

absl::Status RowRounding::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

ValueRanges::ValueRanges(const KvGeometry& geometry)
    : geometry_(geometry),
      by_head_(static_cast<size_t>(geometry.num_layers) * Heads(geometry)) {}

void ValueRanges::Add(int page_index, std::span<const std::byte> rows) {
  const auto dim = static_cast<size_t>(geometry_.head_dim);
  std::vector<float> value(dim);
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < by_head_.size(); ++i) {
    const std::byte* block =
        rows.data() + i / Heads(geometry_) * geometry_.BlockBytes(kPageTokens);
    for (size_t slot = 0; slot < kPageTokens; ++slot) {
      const std::byte* at =
          block +
          geometry_.ValueOffset(kPageTokens, i % Heads(geometry_), slot);
      for (size_t c = 0; c < dim; ++c) {
        value[c] = LoadElement(geometry_, at + c * geometry_.ElementBytes());
      }
      const auto [low, high] = std::minmax_element(value.begin(), value.end());
      by_head_[i].push_back({*high - *low, page_index == 0});
    }
  }
}

ValueRanges::Summary ValueRanges::Summarise() const {
  absl::MutexLock lock(&mutex_);
  Summary summary;
  std::vector<float> all;
  int64_t first_rows = 0, top = 0, first_in_top = 0;
  const auto in_first = [](const Range& r) { return r.in_first_page; };
  for (std::vector<Range> ranges : by_head_) {
    for (const Range& r : ranges) all.push_back(r.range);
    first_rows += std::count_if(ranges.begin(), ranges.end(), in_first);
    const auto quarter = static_cast<ptrdiff_t>(ranges.size() / 4);
    std::nth_element(
        ranges.begin(), ranges.begin() + quarter, ranges.end(),
        [](const Range& a, const Range& b) { return a.range > b.range; });
    top += quarter;
    first_in_top +=
        std::count_if(ranges.begin(), ranges.begin() + quarter, in_first);
  }
  if (all.empty()) return summary;
  std::sort(all.begin(), all.end());
  summary.num_values = static_cast<int64_t>(all.size());
  summary.median = Quantile(all, 0.5);
  summary.p90 = Quantile(all, 0.9);
  summary.p99 = Quantile(all, 0.99);
  summary.largest = all.back();
  summary.first_page_rows =
      static_cast<double>(first_rows) / static_cast<double>(all.size());
  summary.first_page_in_top_quarter =
      top == 0 ? 0
               : static_cast<double>(first_in_top) / static_cast<double>(top);
  return summary;
}

}  // namespace farkv::bench

// Weights into the packed order of matmul_kernels.h.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "kernels/matmul_kernels.h"
#include "kernels/quantized_groups.h"

namespace farkv {
namespace matmul {
namespace {

// Elements of K that are packed together: one line of each row is read while
// the few KiB that it goes to stay in the first-level cache.
constexpr size_t kBlock = 32;

size_t RoundUpToPair(size_t value) { return (value + 1) / 2 * 2; }

// Row `column` of the panel, elements [begin, end). `from` may have any
// alignment: a mapped file promises none.
template <class T>
void PackRow(const std::byte* from, size_t column, size_t begin, size_t end,
             T* out) {
  constexpr size_t kStep = sizeof(T) == sizeof(float) ? 1 : 2;
  for (size_t i = begin; i < end; ++i) {
    std::memcpy(out + (i / kStep * kPanelColumns + column) * kStep + i % kStep,
                from + i * sizeof(T), sizeof(T));
  }
}

template <class T>
void PackRows(const std::byte* from, size_t num_rows, size_t cols, T* out) {
  for (size_t begin = 0; begin < cols; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, cols);
    for (size_t r = 0; r < num_rows; ++r) {
      PackRow(from + r * cols * sizeof(T), r, begin, end, out);
    }
  }
}

// One part of a stored group into column `column` of its packed part.
void PackPart(WeightType type, const std::byte* group, int32_t part,
              size_t column, std::byte* out) {
  const QuantizedLayout layout = LayoutOf(type);
  if (layout.part_scale_bytes > 0) {
    const PartScales scales = ReadPartScales(type, group, part);
    out[column] = static_cast<std::byte>(scales.scale[0]);
    out[kPanelColumns + column] = static_cast<std::byte>(
        type == WeightType::kQ4_K ? scales.minimum
                                  : static_cast<uint8_t>(scales.scale[1]));
  }
  out += layout.part_scale_bytes;
  uint8_t quants[kPartElements];
  ReadQuants(type, group, part, quants);
  const auto add = [&](size_t offset, int shift, const int* elements) {
    for (size_t k = 0; k < 4; ++k) {
      out[offset + 4 * column + k] |=
          static_cast<std::byte>(elements[k] << shift);
    }
  };
  for (size_t step = 0; step < 8; ++step) {
    int low[4], high[4];
    for (size_t k = 0; k < 4; ++k) {
      const int quant = quants[4 * step + k];
      low[k] = type == WeightType::kQ8_0 ? quant : quant & 0xf;
      high[k] = quant >> 4;
    }
    if (type == WeightType::kQ8_0) {
      add(LowBytes(type, step), 0, low);
    } else {
      add(LowBytes(type, step), step < 4 ? 0 : 4, low);
    }
    if (type == WeightType::kQ6_K) {
      add(HighBytes(step), static_cast<int>(step / 2 * 2), high);
    }
  }
}

// `out` is zero.
void PackQuantizedRow(WeightType type, const std::byte* from, size_t column,
                      int32_t cols, std::byte* out) {
  const QuantizedLayout layout = LayoutOf(type);
  for (int32_t k = 0; k < cols; k += GroupElements(type)) {
    const GroupScales scales = ReadGroupScales(type, from);
    std::memcpy(out + 2 * column, &scales.scale, 2);
    if (layout.head_bytes > 2 * kPanelColumns) {
      std::memcpy(out + 2 * (kPanelColumns + column), &scales.minimum, 2);
    }
    out += layout.head_bytes;
    for (int32_t part = 0; part < layout.num_parts; ++part) {
      PackPart(type, from, part, column, out);
      out += layout.part_bytes();
    }
    from += GroupBytes(type);
  }
}

}  // namespace

size_t PanelBytes(WeightType type, int32_t cols) {
  if (IsQuantized(type)) {
    return static_cast<size_t>(cols / GroupElements(type)) *
           LayoutOf(type).bytes();
  }
  const auto k = static_cast<size_t>(cols);
  const size_t column_bytes = type == WeightType::kF32
                                  ? k * sizeof(float)
                                  : RoundUpToPair(k) * sizeof(uint16_t);
  return kPanelColumns * column_bytes;
}

void PackPanel(WeightType type, const void* host, int32_t rows, int32_t cols,
               int32_t panel_index, std::byte* out) {
  const auto k = static_cast<size_t>(cols);
  const size_t first = static_cast<size_t>(panel_index) * kPanelColumns;
  const size_t num_rows =
      std::min<size_t>(kPanelColumns, static_cast<size_t>(rows) - first);
  std::memset(out, 0, PanelBytes(type, cols));
  const auto* from = static_cast<const std::byte*>(host);
  if (IsQuantized(type)) {
    const size_t row_bytes = StoredRowBytes(type, cols);
    for (size_t r = 0; r < num_rows; ++r) {
      PackQuantizedRow(type, from + (first + r) * row_bytes, r, cols, out);
    }
  } else if (type == WeightType::kF32) {
    PackRows(from + first * k * sizeof(float), num_rows, k,
             reinterpret_cast<float*>(out));
  } else {
    PackRows(from + first * k * sizeof(uint16_t), num_rows, k,
             reinterpret_cast<uint16_t*>(out));
  }
}

}  // namespace matmul

absl::StatusOr<PackedWeight> PackWeight(Device& device, Stream& stream,
                                        WeightType type, const void* host,
                                        int32_t rows, int32_t cols) {
  if (rows < 1 || cols < 1 || host == nullptr) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "weight to pack is %d x %d at %p; it needs at least one row, one "
        "column and data",
        rows, cols, host));
  }
  if (cols % GroupElements(type) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "weight to pack is %d x %d of type %s, whose rows are groups of %d "
        "elements",
        rows, cols, WeightTypeName(type), GroupElements(type)));
  }
  const int64_t num_panels =
      (int64_t{rows} + matmul::kPanelColumns - 1) / matmul::kPanelColumns;
  const size_t panel_bytes = matmul::PanelBytes(type, cols);
  PackedWeight weight{type, rows, cols, {}};
  FARKV_ASSIGN_OR_RETURN(
      weight.data,
      device.Allocate(static_cast<size_t>(num_panels) * panel_bytes));
  std::byte* out = weight.data.data();
  stream.Enqueue([=](ThreadPool& pool) {
    pool.ParallelFor(num_panels, [=](int64_t panel) {
      matmul::PackPanel(type, host, rows, cols, static_cast<int32_t>(panel),
                        out + static_cast<size_t>(panel) * panel_bytes);
    });
  });
  stream.Synchronize();  // `host` is the caller's again
  return weight;
}

}  // namespace farkv

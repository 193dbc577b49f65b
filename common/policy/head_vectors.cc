#include "common/policy/head_vectors.h"

#include <cstring>

#include "common/base/bf16.h"

namespace farkv {

void AppendRows(const std::byte* first, size_t stride_bytes, int64_t count,
                std::vector<const std::byte*>& rows) {
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(first + static_cast<size_t>(i) * stride_bytes);
  }
}

void ReadRow(const HeadVectors& vectors, int64_t row, float* out) {
  const std::byte* from = vectors.rows[static_cast<size_t>(row)];
  const auto dim = static_cast<size_t>(vectors.dim);
  if (vectors.dtype == DType::kF32) {
    std::memcpy(out, from, dim * sizeof(float));
    return;
  }
  for (size_t c = 0; c < dim; ++c) {
    uint16_t bits;
    std::memcpy(&bits, from + c * sizeof(bits), sizeof(bits));
    out[c] = Bf16ToFloat(bits);
  }
}

HeadPanels MakePanels(const HeadVectors& vectors) {
  HeadPanels panels;
  panels.dim = vectors.dim;
  panels.count = static_cast<int64_t>(vectors.rows.size());
  const auto dim = static_cast<size_t>(vectors.dim);
  constexpr auto kRows = static_cast<size_t>(HeadPanels::kRows);
  panels.data.assign(static_cast<size_t>(panels.padded()) * dim, 0.0f);
  std::vector<float> row(dim);
  for (size_t i = 0; i < vectors.rows.size(); ++i) {
    ReadRow(vectors, static_cast<int64_t>(i), row.data());
    float* to = panels.data.data() + i / kRows * kRows * dim + i % kRows;
    for (size_t c = 0; c < dim; ++c) to[c * kRows] = row[c];
  }
  return panels;
}

}  // namespace farkv

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/quantized_groups.h"
#include "kernels/row_math.h"

namespace farkv {
namespace {

// Elements of one task of a parallel loop: waking a thread costs about as much
// as this many elements.
constexpr int64_t kTaskElements = 16384;

// Calls body(first, end) on pieces of [0, count) whose work is `cost` elements
// per index. The pieces decide who computes an index, never what.
template <typename Body>
void ForPieces(ThreadPool& pool, int64_t count, int64_t cost,
               const Body& body) {
  const int64_t piece =
      std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, cost));
  const int64_t num_pieces = (count + piece - 1) / piece;
  pool.ParallelFor(num_pieces, [&](int64_t i) {
    body(i * piece, std::min(count, (i + 1) * piece));
  });
}

// Cosines, then sines, of each row's angles, times the attention factor:
// [rows][2][half].
struct Rotations {
  std::vector<int64_t> positions;
  std::vector<double> frequencies;  // [half] or [rows][half]
  size_t half = 0;
  double attention_factor = 1.0;
  std::vector<float> table;
};

std::shared_ptr<const Rotations> ComputeRotations(
    std::span<const int64_t> positions, std::span<const double> frequencies,
    size_t half, double attention_factor) {
  auto rotations = std::make_shared<Rotations>();
  rotations->positions.assign(positions.begin(), positions.end());
  rotations->frequencies.assign(frequencies.begin(), frequencies.end());
  rotations->half = half;
  rotations->attention_factor = attention_factor;
  rotations->table.resize(positions.size() * 2 * half);
  const size_t stride = frequencies.size() == half ? 0 : half;
  for (size_t r = 0; r < positions.size(); ++r) {
    float* row = &rotations->table[r * 2 * half];
    const double* radians = frequencies.data() + r * stride;
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions[r]) * radians[i];
      row[i] = static_cast<float>(std::cos(angle) * attention_factor);
      row[half + i] = static_cast<float>(std::sin(angle) * attention_factor);
    }
  }
  return rotations;
}

// Every layer of a step rotates the same positions, so the last table of this
// thread is kept; it is compared by value, never by address.
std::shared_ptr<const Rotations> GetRotations(
    std::span<const int64_t> positions, std::span<const double> frequencies,
    size_t half, double attention_factor) {
  thread_local std::shared_ptr<const Rotations> last;
  if (last == nullptr || last->half != half ||
      last->attention_factor != attention_factor ||
      !std::ranges::equal(last->positions, positions) ||
      !std::ranges::equal(last->frequencies, frequencies)) {
    last = ComputeRotations(positions, frequencies, half, attention_factor);
  }
  return last;
}

void StoreVector(const KvGeometry& geometry, const float* from, std::byte* to) {
  if (geometry.dtype == DType::kF32) {
    std::memcpy(to, from, geometry.VectorBytes());
  } else {
    RowToBf16(from, static_cast<size_t>(geometry.head_dim),
              reinterpret_cast<uint16_t*>(to));
  }
}

}  // namespace

void RmsNorm(Stream& stream, const float* in, const float* weight,
             float epsilon, int32_t num_rows, int32_t width, float* out) {
  stream.Enqueue([=](ThreadPool& pool) {
    ForPieces(pool, num_rows, width, [=](int64_t first, int64_t end) {
      for (int64_t r = first; r < end; ++r) {
        RmsNormRow(in + r * width, weight, epsilon, static_cast<size_t>(width),
                   out + r * width);
      }
    });
  });
}

void Rope(Stream& stream, float* heads, std::span<const int64_t> positions,
          std::span<const double> frequencies, int32_t num_heads,
          int32_t head_dim, double attention_factor) {
  const auto half = static_cast<size_t>(head_dim) / 2;
  const auto rotations =
      GetRotations(positions, frequencies, half, attention_factor);
  stream.Enqueue([=](ThreadPool& pool) {
    const int64_t width = int64_t{num_heads} * head_dim;
    const auto num_rows = static_cast<int64_t>(rotations->positions.size());
    ForPieces(pool, num_rows, width, [&](int64_t first, int64_t end) {
      for (int64_t r = first; r < end; ++r) {
        const float* cosines =
            &rotations->table[static_cast<size_t>(r) * 2 * half];
        for (int32_t h = 0; h < num_heads; ++h) {
          RotateHead(heads + r * width + int64_t{h} * head_dim, cosines,
                     cosines + half, half);
        }
      }
    });
  });
}

void SiluMultiply(Stream& stream, const float* gate, const float* up,
                  int64_t count, float* out) {
  stream.Enqueue([=](ThreadPool& pool) {
    ForPieces(pool, count, 1, [=](int64_t first, int64_t end) {
      SiluMultiplyRow(gate + first, up + first,
                      static_cast<size_t>(end - first), out + first);
    });
  });
}

void Add(Stream& stream, float* x, const float* y, int64_t count) {
  stream.Enqueue([=](ThreadPool& pool) {
    ForPieces(pool, count, 1, [=](int64_t first, int64_t end) {
      AddRow(x + first, y + first, static_cast<size_t>(end - first));
    });
  });
}

void AddBias(Stream& stream, float* x, const float* bias, int32_t num_rows,
             int32_t width) {
  stream.Enqueue([=](ThreadPool& pool) {
    ForPieces(pool, num_rows, width, [=](int64_t first, int64_t end) {
      for (int64_t r = first; r < end; ++r) {
        AddRow(x + r * width, bias, static_cast<size_t>(width));
      }
    });
  });
}

void Embed(Stream& stream, const EmbeddingTable& table,
           std::span<const int32_t> tokens, float* out) {
  std::vector<int32_t> rows(tokens.begin(), tokens.end());
  const auto width = static_cast<size_t>(table.width);
  const std::byte* data = table.data.data();
  const WeightType type = table.type;
  const size_t row_bytes = StoredRowBytes(type, table.width);
  stream.Enqueue([=, rows = std::move(rows)](ThreadPool&) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::byte* row = data + static_cast<size_t>(rows[r]) * row_bytes;
      float* to = out + r * width;
      if (IsQuantized(type)) {
        DequantizeRow(type, row, static_cast<int32_t>(width), to);
      } else if (type == WeightType::kF32) {
        std::memcpy(to, row, row_bytes);
      } else {
        RowFromBf16(reinterpret_cast<const uint16_t*>(row), width, to);
      }
    }
  });
}

void AppendRows(Stream& stream, const KvGeometry& geometry, const float* keys,
                const float* values, std::span<const RowTarget> targets) {
  std::vector<RowTarget> rows(targets.begin(), targets.end());
  stream.Enqueue([=, rows = std::move(rows)](ThreadPool& pool) {
    const auto num_heads = static_cast<size_t>(geometry.num_kv_heads);
    const auto head_dim = static_cast<size_t>(geometry.head_dim);
    const auto width = static_cast<int64_t>(num_heads * head_dim);
    ForPieces(pool, static_cast<int64_t>(rows.size()), 2 * width,
              [&](int64_t first, int64_t end) {
                for (auto r = static_cast<size_t>(first);
                     r < static_cast<size_t>(end); ++r) {
                  for (size_t h = 0; h < num_heads; ++h) {
                    const size_t from = (r * num_heads + h) * head_dim;
                    const size_t to = h * rows[r].head_stride;
                    StoreVector(geometry, keys + from, rows[r].keys + to);
                    StoreVector(geometry, values + from, rows[r].values + to);
                  }
                }
              });
  });
}

void CopyPieces(Stream& stream, std::span<const CopyPiece> pieces) {
  std::vector<CopyPiece> copies(pieces.begin(), pieces.end());
  stream.Enqueue([copies = std::move(copies)](ThreadPool& pool) {
    size_t bytes = 0;
    for (const CopyPiece& piece : copies) bytes += piece.bytes;
    const auto count = static_cast<int64_t>(copies.size());
    const auto mean = static_cast<int64_t>(bytes) / std::max<int64_t>(1, count);
    ForPieces(pool, count, mean / 4, [&](int64_t first, int64_t end) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(end);
           ++i) {
        if (copies[i].bytes == 0) continue;
        std::memcpy(copies[i].to, copies[i].from, copies[i].bytes);
      }
    });
  });
}

}  // namespace farkv

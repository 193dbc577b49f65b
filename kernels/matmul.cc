#include "kernels/matmul.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/matmul_activations.h"
#include "kernels/matmul_kernels.h"

namespace farkv {
namespace matmul {
namespace {

// Below this many cycles of work a second thread that is awake costs more than
// it brings (a hand-off takes about a microsecond); reckoned as if every step
// of K were one of a full tile.
constexpr int64_t kSerialCycles = 12'000;
constexpr int64_t kTileStepCycles = 24;
constexpr size_t kTileStepBytes = 4 * kPanelColumns;

int32_t CeilDivide(int32_t value, int32_t by) { return (value + by - 1) / by; }

struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// The `index`-th of `count` nearly equal parts.
RowRange Part(RowRange rows, int32_t index, int32_t count) {
  const int32_t size = rows.end - rows.begin;
  return {rows.begin + size * index / count,
          rows.begin + size * (index + 1) / count};
}

int32_t Depth(WeightType type, int32_t cols) {
  return type == WeightType::kBf16 ? CeilDivide(cols, 2)
                                   : cols / GroupElements(type);
}

// At most kScratchRows rows of one product, cut into units: one panel times
// one of the row ranges.
class Chunk {
 public:
  // `rows` are those of `first_row` and after.
  Chunk(const Product& product, int32_t first_row, int32_t num_rows,
        ConvertedRows rows, int num_threads);

  void RunUnit(int64_t unit) const;
  int64_t num_units() const { return int64_t{num_panels_} * num_ranges_; }

  int64_t cycles() const {
    return static_cast<int64_t>(panel_bytes_ / kTileStepBytes) * num_panels_ *
           kTileStepCycles * CeilDivide(num_rows_, kTileRows);
  }

 private:
  const std::byte* Panel(int64_t unit) const;

  Product product_;
  int32_t first_row_;
  int32_t num_rows_;
  ConvertedRows rows_;
  int32_t num_panels_;
  int32_t num_ranges_;
  size_t panel_bytes_;
};

// With few panels, ranges of rows keep every thread busy; each is long enough
// that reading a panel again for the next range costs little.
int32_t NumRanges(int32_t num_rows, int32_t num_panels, int num_threads) {
  constexpr int32_t kMinRangeRows = 8 * kTileRows;
  constexpr int32_t kUnitsPerThread = 4;
  if (num_threads == 1) return 1;
  const int32_t wanted = CeilDivide(kUnitsPerThread * num_threads, num_panels);
  return std::clamp(num_rows / kMinRangeRows, 1, wanted);
}

Chunk::Chunk(const Product& product, int32_t first_row, int32_t num_rows,
             ConvertedRows rows, int num_threads)
    : product_(product),
      first_row_(first_row),
      num_rows_(num_rows),
      rows_(rows),
      num_panels_(CeilDivide(product.rows, kPanelColumns)),
      num_ranges_(NumRanges(num_rows, num_panels_, num_threads)),
      panel_bytes_(PanelBytes(product.type, product.cols)) {}

const std::byte* Chunk::Panel(int64_t unit) const {
  return product_.panels +
         static_cast<size_t>(unit / num_ranges_) * panel_bytes_;
}

void MultiplyTile(Kernel kernel, const Tile& tile) {
  switch (kernel) {
    case Kernel::kAvx512Bf16:
      return MultiplyAvx512Bf16(tile);
    case Kernel::kHighwayBf16:
      return MultiplyHighwayBf16(tile);
    case Kernel::kHighwayF32:
      return MultiplyHighwayF32(tile);
    case Kernel::kAvx512Vnni:
      return MultiplyAvx512Vnni(tile);
    case Kernel::kAvx2:
      return MultiplyAvx2(tile);
    case Kernel::kHighwayQuantized:
      return MultiplyHighwayQuantized(tile);
  }
}

void Chunk::RunUnit(int64_t unit) const {
  const auto panel = static_cast<int32_t>(unit / num_ranges_);
  const auto range = static_cast<int32_t>(unit % num_ranges_);
  const RowRange rows = Part({0, num_rows_}, range, num_ranges_);
  const int32_t num_groups = CeilDivide(rows.end - rows.begin, kTileRows);
  // The panel that this thread will probably take next. The first group is
  // held up by its own panel's bytes; each of four more fetches a quarter.
  const int64_t next_unit = unit + 1;
  const std::byte* next = next_unit < num_units() ? Panel(next_unit) : nullptr;
  const size_t quarter_bytes = panel_bytes_ / 4;
  Tile tile;
  tile.type = product_.type;
  tile.row_stride = rows_.stride;
  tile.panel = Panel(unit);
  tile.depth = Depth(product_.type, product_.cols);
  tile.num_columns =
      std::min(kPanelColumns, product_.rows - panel * kPanelColumns);
  tile.out_stride = product_.rows;
  for (int32_t group = 0; group < num_groups; ++group) {
    const RowRange group_rows = Part(rows, group, num_groups);
    tile.rows =
        rows_.rows + static_cast<size_t>(group_rows.begin) * rows_.stride;
    tile.num_rows = group_rows.end - group_rows.begin;
    tile.fetches_panel = group == 0;
    const bool fetches =
        next != nullptr && next != tile.panel && group >= 1 && group <= 4;
    tile.prefetch = fetches
                        ? next + static_cast<size_t>(group - 1) * quarter_bytes
                        : nullptr;
    tile.out = product_.out +
               (int64_t{first_row_} + group_rows.begin) * product_.rows +
               int64_t{panel} * kPanelColumns;
    MultiplyTile(product_.kernel, tile);
  }
}

// All units of all chunks, cut into one stretch for each thread: memory is
// read much faster front to back than in turns. Who has finished its own
// stretch helps with the others, so that a thread that comes late or never
// costs nothing but its share.
class Stretches {
 public:
  Stretches(const std::vector<Chunk>& chunks, int64_t num_units, int count)
      : chunks_(chunks), stretches_(static_cast<size_t>(count)) {
    for (int64_t i = 0; i < count; ++i) {
      Stretch& stretch = stretches_[static_cast<size_t>(i)];
      stretch.next.store(num_units * i / count, std::memory_order_relaxed);
      stretch.end = num_units * (i + 1) / count;
    }
  }

  void Run(size_t first) {
    for (size_t i = 0; i < stretches_.size(); ++i) {
      Stretch& stretch = stretches_[(first + i) % stretches_.size()];
      for (;;) {
        const int64_t unit =
            stretch.next.fetch_add(1, std::memory_order_relaxed);
        if (unit >= stretch.end) break;
        RunUnit(unit);
      }
    }
  }

 private:
  struct alignas(64) Stretch {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void RunUnit(int64_t unit) const {
    auto chunk = chunks_.begin();
    for (; unit >= chunk->num_units(); ++chunk) unit -= chunk->num_units();
    chunk->RunUnit(unit);
  }

  const std::vector<Chunk>& chunks_;
  std::vector<Stretch> stretches_;
};

void RunChunks(ThreadPool& pool, const std::vector<Chunk>& chunks) {
  int64_t num_units = 0;
  int64_t cycles = 0;
  for (const Chunk& chunk : chunks) {
    num_units += chunk.num_units();
    cycles += chunk.cycles();
  }
  const int count = cycles < kSerialCycles ? 1 : pool.num_threads();
  Stretches stretches(chunks, num_units, count);
  pool.ParallelFor(count, [&stretches](int64_t i) {
    stretches.Run(static_cast<size_t>(i));
  });
}

}  // namespace

Kernel ChooseKernel(WeightType type) {
  if (type == WeightType::kF32) return Kernel::kHighwayF32;
  if (IsQuantized(type)) {
    if (HasAvx512Vnni()) return Kernel::kAvx512Vnni;
    return HasAvx2() ? Kernel::kAvx2 : Kernel::kHighwayQuantized;
  }
  return HasAvx512Bf16() ? Kernel::kAvx512Bf16 : Kernel::kHighwayBf16;
}

const char* KernelName(Kernel kernel) {
  switch (kernel) {
    case Kernel::kAvx512Bf16:
      return "avx512bf16";
    case Kernel::kAvx512Vnni:
      return "avx512vnni";
    case Kernel::kAvx2:
      return "avx2";
    case Kernel::kHighwayBf16:
    case Kernel::kHighwayF32:
    case Kernel::kHighwayQuantized:
      break;
  }
  return "highway";
}

void Multiply(ThreadPool& pool, const float* activations, int32_t num_rows,
              std::span<const Product> products) {
  if (products.empty()) return;
  const int32_t cols = products.front().cols;
  std::vector<Chunk> chunks;
  chunks.reserve(products.size());
  for (int32_t row = 0; row < num_rows; row += kScratchRows) {
    const int32_t count = std::min(kScratchRows, num_rows - row);
    Activations rows(activations + int64_t{row} * cols, count, cols);
    chunks.clear();
    for (const Product& product : products) {
      chunks.emplace_back(product, row, count, rows.For(product.kernel, pool),
                          pool.num_threads());
    }
    RunChunks(pool, chunks);
  }
}

}  // namespace matmul

void MatMul(Stream& stream, const float* activations, int32_t num_rows,
            std::span<const MatMulOutput> outputs) {
  std::vector<matmul::Product> products;
  for (const auto& [weight, out] : outputs) {
    products.push_back({.kernel = matmul::ChooseKernel(weight->type),
                        .type = weight->type,
                        .panels = weight->data.data(),
                        .rows = weight->rows,
                        .cols = weight->cols,
                        .out = out});
  }
  stream.Enqueue([=, products = std::move(products)](ThreadPool& pool) {
    matmul::Multiply(pool, activations, num_rows, products);
  });
}

void MatMul(Stream& stream, const float* activations, int32_t num_rows,
            const PackedWeight& weight, float* out) {
  const MatMulOutput output{&weight, out};
  MatMul(stream, activations, num_rows, {&output, 1});
}

}  // namespace farkv

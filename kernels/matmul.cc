#include "kernels/matmul.h"

#include <algorithm>
#include <memory>
#include <new>

#include "kernels/cpu_features.h"
#include "kernels/matmul_kernels.h"

namespace farkv {
namespace matmul {
namespace {

constexpr size_t kCacheLine = 64;
// Rows that are rounded at a time, which bounds the scratch to 2 MiB at K =
// 4096; enough that weights read again for the next rows cost nothing.
constexpr int32_t kScratchRows = 256;
// Below this many cycles of work a second thread costs more than it brings;
// reckoned as if every step of K were one of a full tile.
constexpr int64_t kSerialCycles = 100'000;
constexpr int64_t kTileStepCycles = 24;
constexpr size_t kTileStepBytes = 4 * kPanelColumns;

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

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

// Bytes of a row of activations as `kernel` wants it.
size_t RowBytes(Kernel kernel, int32_t cols) {
  const auto pairs = static_cast<size_t>(CeilDivide(cols, 2));
  switch (kernel) {
    case Kernel::kAvx512Bf16:
      return pairs * 2 * sizeof(uint16_t);
    case Kernel::kHighwayBf16:
      return pairs * 2 * sizeof(float);
    case Kernel::kHighwayF32:
      return static_cast<size_t>(cols) * sizeof(float);
    case Kernel::kAvx512Vnni:
    case Kernel::kHighwayQuantized:
      return QuantizedRowLayout(cols).bytes;
  }
  return 0;
}

void RoundRow(Kernel kernel, const float* in, int32_t cols, std::byte* out) {
  if (kernel == Kernel::kAvx512Bf16) {
    auto* to = reinterpret_cast<uint16_t*>(out);
    RoundRowAvx512Bf16(in, cols, to);
    if (cols % 2 != 0) to[cols] = 0;
  } else if (kernel == Kernel::kHighwayBf16) {
    auto* to = reinterpret_cast<float*>(out);
    RoundRowHighwayBf16(in, cols, to);
    if (cols % 2 != 0) to[cols] = 0.0f;
  } else {
    QuantizeRow(in, cols, out);
  }
}

// The rounded activations of one thread's current product. Grows to the
// largest asked, at most kScratchRows rows, and is kept.
class Scratch {
 public:
  std::byte* Reserve(size_t bytes) {
    if (bytes > size_) {
      data_.reset(static_cast<std::byte*>(
          ::operator new(bytes, std::align_val_t(kCacheLine))));
      size_ = bytes;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* data) const {
      ::operator delete(data, std::align_val_t(kCacheLine));
    }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

// At most kScratchRows rows of a product, with their activations as the kernel
// wants them.
class Chunk {
 public:
  Chunk(Kernel kernel, const Product& product, int32_t first_row,
        int32_t num_rows, int num_threads);

  // Fills the scratch; before the first unit. By the caller alone: it takes a
  // hundredth of the product, less than waking the other threads twice.
  void RoundActivations();

  // One panel times one of the row ranges.
  void RunUnit(int64_t unit) const;
  int64_t num_units() const { return int64_t{num_panels_} * num_ranges_; }

  int64_t cycles() const {
    return static_cast<int64_t>(panel_bytes_ / kTileStepBytes) * num_panels_ *
           kTileStepCycles * CeilDivide(num_rows_, kTileRows);
  }

 private:
  const std::byte* Panel(int64_t unit) const;

  const Kernel kernel_;
  const Product& product_;
  const int32_t first_row_;
  const int32_t num_rows_;
  const int num_threads_;
  const int32_t depth_;
  const int32_t num_panels_;
  int32_t num_ranges_ = 1;
  size_t panel_bytes_ = 0;
  const std::byte* rows_ = nullptr;
  std::byte* rounded_ = nullptr;  // rows_ where they are the scratch
  size_t row_stride_ = 0;
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

Chunk::Chunk(Kernel kernel, const Product& product, int32_t first_row,
             int32_t num_rows, int num_threads)
    : kernel_(kernel),
      product_(product),
      first_row_(first_row),
      num_rows_(num_rows),
      num_threads_(num_threads),
      depth_(Depth(product.type, product.cols)),
      num_panels_(CeilDivide(product.rows, kPanelColumns)),
      num_ranges_(NumRanges(num_rows, num_panels_, num_threads)) {
  panel_bytes_ = PanelBytes(product.type, product.cols);
  const size_t row_bytes = RowBytes(kernel, product.cols);
  if (kernel == Kernel::kHighwayF32) {
    row_stride_ = row_bytes;
    rows_ = reinterpret_cast<const std::byte*>(
        product.activations + int64_t{first_row} * product.cols);
    return;
  }
  // An odd number of cache lines, so that the rows of a tile do not meet in
  // one cache set.
  row_stride_ = RoundUp(row_bytes, 2 * kCacheLine) + kCacheLine;
  thread_local Scratch scratch;
  rounded_ = scratch.Reserve(row_stride_ * static_cast<size_t>(num_rows));
  rows_ = rounded_;
}

void Chunk::RoundActivations() {
  if (rounded_ == nullptr) return;
  const int32_t cols = product_.cols;
  for (int32_t r = 0; r < num_rows_; ++r) {
    const float* in = product_.activations + (int64_t{first_row_} + r) * cols;
    RoundRow(kernel_, in, cols,
             rounded_ + static_cast<size_t>(r) * row_stride_);
  }
}

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
  const int64_t next_unit = unit + num_threads_;
  const std::byte* next = next_unit < num_units() ? Panel(next_unit) : nullptr;
  const size_t quarter_bytes = panel_bytes_ / 4;
  Tile tile;
  tile.type = product_.type;
  tile.row_stride = row_stride_;
  tile.panel = Panel(unit);
  tile.depth = depth_;
  tile.num_columns =
      std::min(kPanelColumns, product_.rows - panel * kPanelColumns);
  tile.out_stride = product_.rows;
  for (int32_t group = 0; group < num_groups; ++group) {
    const RowRange group_rows = Part(rows, group, num_groups);
    tile.rows = rows_ + static_cast<size_t>(group_rows.begin) * row_stride_;
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
    MultiplyTile(kernel_, tile);
  }
}

void RunChunk(ThreadPool& pool, Chunk& chunk) {
  chunk.RoundActivations();
  const auto run = [&chunk](int64_t unit) { chunk.RunUnit(unit); };
  if (chunk.cycles() < kSerialCycles) {
    for (int64_t i = 0; i < chunk.num_units(); ++i) run(i);
  } else {
    pool.ParallelFor(chunk.num_units(), run);
  }
}

}  // namespace

Kernel ChooseKernel(WeightType type) {
  if (type == WeightType::kF32) return Kernel::kHighwayF32;
  if (IsQuantized(type)) {
    return HasAvx512Vnni() ? Kernel::kAvx512Vnni : Kernel::kHighwayQuantized;
  }
  return HasAvx512Bf16() ? Kernel::kAvx512Bf16 : Kernel::kHighwayBf16;
}

void Multiply(ThreadPool& pool, Kernel kernel, const Product& product) {
  for (int32_t row = 0; row < product.num_rows; row += kScratchRows) {
    Chunk chunk(kernel, product, row,
                std::min(kScratchRows, product.num_rows - row),
                pool.num_threads());
    RunChunk(pool, chunk);
  }
}

}  // namespace matmul

void MatMul(Stream& stream, const float* activations, int32_t num_rows,
            const PackedWeight& weight, float* out) {
  const matmul::Product product{.type = weight.type,
                                .activations = activations,
                                .num_rows = num_rows,
                                .panels = weight.data.data(),
                                .rows = weight.rows,
                                .cols = weight.cols,
                                .out = out};
  const matmul::Kernel kernel = matmul::ChooseKernel(weight.type);
  stream.Enqueue([kernel, product](ThreadPool& pool) {
    matmul::Multiply(pool, kernel, product);
  });
}

}  // namespace farkv

#include "kernels/matmul_activations.h"

#include <algorithm>
#include <memory>
#include <new>

namespace farkv::matmul {
namespace {

constexpr size_t kCacheLine = 64;
// Elements that one thread converts in about the time it takes to wake another.
constexpr int64_t kSerialElements = 32 * 1024;

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Grows to the largest asked and is kept.
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

}  // namespace

Activations::Form Activations::FormOf(Kernel kernel) {
  switch (kernel) {
    case Kernel::kAvx512Bf16:
      return kBf16;
    case Kernel::kHighwayBf16:
      return kRoundedF32;
    case Kernel::kAvx512Vnni:
    case Kernel::kAvx2:
    case Kernel::kHighwayQuantized:
      return kQuantized;
    case Kernel::kHighwayF32:
      break;
  }
  return kNumForms;
}

size_t Activations::RowBytes(Form form) const {
  const auto pairs = static_cast<size_t>(cols_ + 1) / 2;
  if (form == kBf16) return pairs * 2 * sizeof(uint16_t);
  if (form == kRoundedF32) return pairs * 2 * sizeof(float);
  return QuantizedRowLayout(cols_).bytes;
}

void Activations::ConvertRow(Form form, int32_t row, std::byte* out) const {
  const float* in = activations_ + int64_t{row} * cols_;
  if (form == kBf16) {
    auto* to = reinterpret_cast<uint16_t*>(out);
    RoundRowAvx512Bf16(in, cols_, to);
    if (cols_ % 2 != 0) to[cols_] = 0;
  } else if (form == kRoundedF32) {
    auto* to = reinterpret_cast<float*>(out);
    RoundRowHighwayBf16(in, cols_, to);
    if (cols_ % 2 != 0) to[cols_] = 0.0f;
  } else {
    QuantizeRow(in, cols_, out);
  }
}

ConvertedRows Activations::Convert(Form form, ThreadPool& pool) const {
  // An odd number of cache lines, so that the rows of a tile do not meet in
  // one cache set.
  const size_t stride = RoundUp(RowBytes(form), 2 * kCacheLine) + kCacheLine;
  thread_local std::array<Scratch, kNumForms> scratch;
  std::byte* rows =
      scratch[form].Reserve(stride * static_cast<size_t>(num_rows_));
  constexpr int32_t kTaskRows = 8;
  const auto convert = [=, this](int64_t task) {
    const auto first = static_cast<int32_t>(task) * kTaskRows;
    for (int32_t r = first; r < std::min(first + kTaskRows, num_rows_); ++r) {
      ConvertRow(form, r, rows + static_cast<size_t>(r) * stride);
    }
  };
  const int64_t num_tasks = (num_rows_ + kTaskRows - 1) / kTaskRows;
  if (int64_t{num_rows_} * cols_ >= kSerialElements) {
    pool.ParallelFor(num_tasks, convert);
  } else {
    for (int64_t task = 0; task < num_tasks; ++task) convert(task);
  }
  return {rows, stride};
}

ConvertedRows Activations::For(Kernel kernel, ThreadPool& pool) {
  const Form form = FormOf(kernel);
  if (form == kNumForms) {  // as they are
    return {reinterpret_cast<const std::byte*>(activations_),
            static_cast<size_t>(cols_) * sizeof(float)};
  }
  if (converted_[form].rows == nullptr) converted_[form] = Convert(form, pool);
  return converted_[form];
}

}  // namespace farkv::matmul

// The quantised half of farkv-bench matmul. One row is bound by reading the
// weights, so a plain read of as many bytes is the yardstick; more rows are
// bound by the dot products, where the same shape in bf16 says what the type
// costs or gains (the int8 instructions do twice as much per cycle).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/bench_line.h"
#include "bench/matmul_options.h"
#include "bench/paired.h"
#include "bench/plain_read.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "kernels/matmul.h"
#include "kernels/matmul_kernels.h"

namespace farkv::bench {
namespace {

constexpr WeightType kTypes[] = {WeightType::kQ8_0, WeightType::kQ4_0,
                                 WeightType::kQ4_1, WeightType::kQ4_K,
                                 WeightType::kQ6_K};
constexpr int32_t kManyRows[] = {64, 256};
constexpr double kReadGoal = 0.85;
constexpr double kBf16Goal = 1.0;

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// Stored groups with random integers and small scales; bf16 values in [1, 2).
std::vector<std::byte> StoredBytes(WeightType type, MatMulShape shape) {
  std::vector<std::byte> bytes(static_cast<size_t>(shape.rows) *
                               StoredRowBytes(type, shape.cols));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(SplitMix64At(1, i) & 0xff);
  }
  if (type == WeightType::kBf16) {
    for (size_t i = 1; i < bytes.size(); i += 2) bytes[i] = std::byte{0x3f};
    return bytes;
  }
  const size_t scale = type == WeightType::kQ6_K ? 208 : 0;
  const bool has_minimum =
      type == WeightType::kQ4_1 || type == WeightType::kQ4_K;
  for (size_t at = 0; at < bytes.size(); at += GroupBytes(type)) {
    constexpr uint16_t kSmall = 0x1c00;  // fp16 2^-8
    std::memcpy(&bytes[at + scale], &kSmall, sizeof(kSmall));
    if (has_minimum) std::memcpy(&bytes[at + 2], &kSmall, sizeof(kSmall));
  }
  return bytes;
}

// Products with weights of one type that rotate over more than four caches.
class Rotation {
 public:
  Rotation(ThreadPool& pool, Device& device, MatMulShape shape)
      : pool_(pool),
        device_(device),
        stream_(device.NewStream()),
        shape_(shape) {}

  absl::Status Init(WeightType type, bool smoke) {
    const std::vector<std::byte> stored = StoredBytes(type, shape_);
    const size_t packed_bytes = static_cast<size_t>((shape_.rows + 63) / 64) *
                                matmul::PanelBytes(type, shape_.cols);
    const size_t count =
        smoke ? 2 : 4 * LastLevelCacheBytes() / packed_bytes + 2;
    for (size_t i = 0; i < count; ++i) {
      FARKV_ASSIGN_OR_RETURN(PackedWeight weight,
                             PackWeight(device_, *stream_, type, stored.data(),
                                        shape_.rows, shape_.cols));
      weights_.push_back(std::move(weight));
    }
    return absl::OkStatus();
  }

  double Multiply(const std::vector<float>& activations, int32_t num_rows,
                  int num_calls) {
    out_.resize(static_cast<size_t>(num_rows) *
                static_cast<size_t>(shape_.rows));
    return Seconds([&] {
      for (int i = 0; i < num_calls; ++i) {
        MatMul(*stream_, activations.data(), num_rows, Next(), out_.data());
      }
      stream_->Synchronize();
    });
  }

  double Read(int num_calls) {
    return Seconds([&] {
      for (int i = 0; i < num_calls; ++i) {
        const DeviceBuffer& data = Next().data;
        read_sum_ += PlainRead(pool_, data.data(), data.size());
      }
    });
  }

  int size() const { return static_cast<int>(weights_.size()); }
  size_t weight_bytes() const { return weights_.front().data.size(); }

 private:
  const PackedWeight& Next() { return weights_[next_++ % weights_.size()]; }

  ThreadPool& pool_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  const MatMulShape shape_;
  std::vector<PackedWeight> weights_;
  std::vector<float> out_;
  size_t next_ = 0;
  uint64_t read_sum_ = 0;
};

class QuantizedBench {
 public:
  QuantizedBench(const MatMulOptions& options, MatMulShape shape)
      : options_(options), shape_(shape), pool_(options.threads) {}

  absl::Status Run() {
    FARKV_ASSIGN_OR_RETURN(device_, OpenDevice("cpu", pool_));
    const int32_t most =
        *std::max_element(std::begin(kManyRows), std::end(kManyRows));
    activations_.resize(static_cast<size_t>(most) *
                        static_cast<size_t>(shape_.cols));
    for (size_t i = 0; i < activations_.size(); ++i) {
      activations_[i] =
          static_cast<float>(2.0 * ToUnit(SplitMix64At(2, i)) - 1.0);
    }
    Rotation bf16(pool_, *device_, shape_);
    FARKV_RETURN_IF_ERROR(bf16.Init(WeightType::kBf16, options_.smoke));
    for (const WeightType type : kTypes) {
      if (shape_.cols % GroupElements(type) != 0) continue;
      FARKV_RETURN_IF_ERROR(RunType(type, bf16));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunType(WeightType type, Rotation& bf16) {
    Rotation weights(pool_, *device_, shape_);
    FARKV_RETURN_IF_ERROR(weights.Init(type, options_.smoke));
    // A whole rotation, or the read would find what the product has just read.
    const int all = weights.size();
    const auto bytes = static_cast<double>(weights.weight_bytes());
    const std::vector<Contender> one_row = {
        [&] { return weights.Multiply(activations_, 1, all); },
        [&] { return weights.Read(all); }};
    const auto reads = RunRounds(options_.NumRounds(), one_row);
    Report(type, 1, "GB/s", Compare(reads[0], reads[1]), 1e-9 * all * bytes,
           "plain read", kReadGoal);
    for (const int32_t m : kManyRows) {
      const double flops = 2.0 * m * shape_.rows * shape_.cols;
      const int calls = std::clamp(static_cast<int>(1e9 / flops), 2, all);
      const std::vector<Contender> many_rows = {
          [&] { return weights.Multiply(activations_, m, calls); },
          [&] { return bf16.Multiply(activations_, m, calls); }};
      const auto seconds = RunRounds(options_.NumRounds(), many_rows);
      Report(type, m, "GFLOP/s", Compare(seconds[0], seconds[1]),
             1e-9 * calls * flops, "our bf16", kBf16Goal);
    }
    return absl::OkStatus();
  }

  void Report(WeightType type, int32_t num_rows, const char* unit,
              const Comparison& measured, double work, const char* yardstick,
              double goal) const {
    BenchLine line;
    line.bench = "matmul";
    line.case_name = absl::StrFormat("%s-m%d", WeightTypeName(type), num_rows);
    line.value = work / measured.seconds;
    line.unit = unit;
    line.yardstick = {yardstick, work / measured.yardstick_seconds};
    line.ratio = measured.ratio;
    line.goal = goal;
    line.runs = options_.NumRounds();
    line.spread = measured.spread;
    line.params = {{"m", num_rows},
                   {"k", shape_.cols},
                   {"n", shape_.rows},
                   {"threads", options_.threads},
                   {"kernel", matmul::KernelName(matmul::ChooseKernel(type))}};
    Print(line);
  }

  const MatMulOptions options_;
  const MatMulShape shape_;
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  std::vector<float> activations_;
};

}  // namespace

absl::Status RunQuantizedMatMul(const MatMulOptions& options) {
  FARKV_ASSIGN_OR_RETURN(const MatMulShape shape, CheckOptions(options));
  return QuantizedBench(options, shape).Run();
}

}  // namespace farkv::bench

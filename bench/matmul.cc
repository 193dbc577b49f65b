// farkv-bench matmul: our bf16 product against oneDNN's, and for one row
// against a plain read of the weights, which bounds decode; the quantised types
// are in matmul_quantized.cc. Weights rotate over more than four last-level
// caches, so each product finds its weights in DRAM, as a model's next layer
// does.
#include "kernels/matmul.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/bench_line.h"
#include "bench/matmul_options.h"
#include "bench/onednn_matmul.h"
#include "bench/paired.h"
#include "bench/plain_read.h"
#include "bench/subcommands.h"
#include "common/base/bf16.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "kernels/stream.h"

namespace farkv::bench {
namespace {

struct Goal {
  int32_t num_rows;
  double ratio_to_onednn;
};
constexpr Goal kGoals[] = {
    {1, 1.0}, {4, 1.0}, {32, 1.0}, {64, 1.0}, {256, 0.9}};
constexpr double kReadGoal = 0.90;

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

std::vector<uint16_t> RandomBf16(size_t count, uint32_t seed) {
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value =
        FloatToBf16(static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f);
  }
  return values;
}

absl::StatusOr<MatMulShape> ParseShape(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  MatMulShape shape;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &shape.cols) ||
      !absl::SimpleAtoi(parts[1], &shape.rows) || shape.cols < 1 ||
      shape.rows < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--shape '%s' is not KxN with K, N >= 1, like 2048x2048", text));
  }
  return shape;
}

// Both contenders with as many weights as four caches hold, and a bit.
class MatMulBench {
 public:
  static absl::StatusOr<std::unique_ptr<MatMulBench>> Create(
      const MatMulOptions& options);

  // Measures and prints the lines for one number of rows.
  absl::Status RunRows(const Goal& goal);

 private:
  MatMulBench(const MatMulOptions& options, int32_t rows, int32_t cols)
      : options_(options), rows_(rows), cols_(cols), pool_(options.threads) {}

  absl::Status Init();
  absl::Status SetActivations(int32_t num_rows);
  absl::Status CheckAgreement(int32_t num_rows);
  double RunOwn(int32_t num_rows, int num_calls);
  double RunOneDnn(int num_calls);
  double ReadWeights(int num_calls);
  int CallsPerRound(int32_t num_rows) const;
  // `work` in the line's unit times seconds.
  void PrintLine(BenchLine line, int32_t num_rows, const Comparison& measured,
                 double work, const std::string& yardstick) const;

  int NumRounds() const { return options_.NumRounds(); }
  double Flops(int32_t num_rows) const {
    return 2.0 * num_rows * rows_ * cols_;
  }

  size_t weight_bytes() const {
    return sizeof(uint16_t) * static_cast<size_t>(rows_) *
           static_cast<size_t>(cols_);
  }

  const MatMulOptions options_;
  const int32_t rows_;
  const int32_t cols_;
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<PackedWeight> weights_;
  std::unique_ptr<OneDnnMatMul> onednn_;
  std::vector<float> activations_;
  std::vector<float> out_;
  size_t own_next_ = 0;  // where each rotation over the weights stands
  size_t onednn_next_ = 0;
  size_t read_next_ = 0;
  uint64_t read_sum_ = 0;
  absl::Status onednn_status_;
};

absl::StatusOr<std::unique_ptr<MatMulBench>> MatMulBench::Create(
    const MatMulOptions& options) {
  FARKV_ASSIGN_OR_RETURN(const MatMulShape shape, CheckOptions(options));
  std::unique_ptr<MatMulBench> bench(
      new MatMulBench(options, shape.rows, shape.cols));
  FARKV_RETURN_IF_ERROR(bench->Init());
  return bench;
}

absl::Status MatMulBench::Init() {
  FARKV_ASSIGN_OR_RETURN(device_, OpenDevice("cpu", pool_));
  stream_ = device_->NewStream();
  const size_t num_weights =
      options_.smoke ? 2 : 4 * LastLevelCacheBytes() / weight_bytes() + 2;
  const std::vector<uint16_t> values =
      RandomBf16(weight_bytes() / sizeof(uint16_t), 1);
  for (size_t i = 0; i < num_weights; ++i) {
    FARKV_ASSIGN_OR_RETURN(PackedWeight weight,
                           PackWeight(*device_, *stream_, WeightType::kBf16,
                                      values.data(), rows_, cols_));
    weights_.push_back(std::move(weight));
  }
  const std::vector<const uint16_t*> same(num_weights, values.data());
  FARKV_ASSIGN_OR_RETURN(
      onednn_, OneDnnMatMul::Create(same, rows_, cols_, options_.threads));
  return absl::OkStatus();
}

absl::Status MatMulBench::SetActivations(int32_t num_rows) {
  const auto count = static_cast<size_t>(num_rows) * static_cast<size_t>(cols_);
  const std::vector<uint16_t> values = RandomBf16(count, 2);
  activations_.resize(count);
  std::transform(values.begin(), values.end(), activations_.begin(),
                 Bf16ToFloat);
  out_.assign(static_cast<size_t>(num_rows) * static_cast<size_t>(rows_), 0.0f);
  return onednn_->SetActivations(values);
}

// Both must compute the same thing, or a ratio says nothing.
absl::Status MatMulBench::CheckAgreement(int32_t num_rows) {
  RunOwn(num_rows, 1);
  RunOneDnn(1);
  FARKV_RETURN_IF_ERROR(onednn_status_);
  const double tolerance = 1e-5 * std::sqrt(static_cast<double>(cols_));
  for (size_t i = 0; i < out_.size(); ++i) {
    const double difference =
        std::abs(double{out_[i]} - double{onednn_->out()[i]});
    if (!(difference <= tolerance)) {
      return absl::DataLossError(absl::StrFormat(
          "element %d of the product with %d rows is %g, oneDNN has %g", i,
          num_rows, out_[i], onednn_->out()[i]));
    }
  }
  return absl::OkStatus();
}

double MatMulBench::RunOwn(int32_t num_rows, int num_calls) {
  return Seconds([&] {
    for (int i = 0; i < num_calls; ++i) {
      MatMul(*stream_, activations_.data(), num_rows,
             weights_[own_next_++ % weights_.size()], out_.data());
    }
    stream_->Synchronize();
  });
}

double MatMulBench::RunOneDnn(int num_calls) {
  const double seconds = Seconds([&] {
    for (int i = 0; i < num_calls; ++i) {
      onednn_status_.Update(onednn_->Run(onednn_next_++ % weights_.size()));
    }
  });
  // OpenMP's idle threads spin for some milliseconds and would take the cores
  // of whoever is measured next.
  if (options_.threads > 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return seconds;
}

double MatMulBench::ReadWeights(int num_calls) {
  return Seconds([&] {
    for (int i = 0; i < num_calls; ++i) {
      const DeviceBuffer& data = weights_[read_next_++ % weights_.size()].data;
      read_sum_ += PlainRead(pool_, data.data(), data.size());
    }
  });
}

void MatMulBench::PrintLine(BenchLine line, int32_t num_rows,
                            const Comparison& measured, double work,
                            const std::string& yardstick) const {
  line.bench = "matmul";
  line.value = work / measured.seconds;
  line.yardstick = {yardstick, work / measured.yardstick_seconds};
  line.ratio = measured.ratio;
  line.runs = NumRounds();
  line.spread = measured.spread;
  line.params = {{"m", num_rows},
                 {"k", cols_},
                 {"n", rows_},
                 {"threads", options_.threads},
                 {"weights", weights_.size()},
                 {"kernel", KernelTarget()},
                 {"onednn", onednn_->implementation()}};
  Print(line);
}

// Some milliseconds each. One row takes a whole rotation, or the plain read
// would find in cache what the product has just read.
int MatMulBench::CallsPerRound(int32_t num_rows) const {
  constexpr double kFlops = 1e9;
  const int all = static_cast<int>(weights_.size());
  if (num_rows == 1) return all;
  return std::clamp(static_cast<int>(kFlops / Flops(num_rows)), 2, all);
}

absl::Status MatMulBench::RunRows(const Goal& goal) {
  const int32_t m = goal.num_rows;
  FARKV_RETURN_IF_ERROR(SetActivations(m));
  FARKV_RETURN_IF_ERROR(CheckAgreement(m));
  const int calls = CallsPerRound(m);
  std::vector<Contender> contenders = {[&] { return RunOwn(m, calls); },
                                       [&] { return RunOneDnn(calls); }};
  if (m == 1) contenders.push_back([&] { return ReadWeights(calls); });
  const std::vector<std::vector<double>> seconds =
      RunRounds(NumRounds(), contenders);
  FARKV_RETURN_IF_ERROR(onednn_status_);

  BenchLine line;
  line.case_name = absl::StrFormat("m%d-onednn", m);
  line.unit = "GFLOP/s";
  line.goal = goal.ratio_to_onednn;
  PrintLine(line, m, Compare(seconds[0], seconds[1]), 1e-9 * calls * Flops(m),
            onednn_->name());
  if (m == 1) {
    line.case_name = "m1-read";
    line.unit = "GB/s";
    line.goal = kReadGoal;
    const auto bytes = static_cast<double>(weights_[0].data.size());
    PrintLine(line, m, Compare(seconds[0], seconds[2]), 1e-9 * calls * bytes,
              "plain read");
  }
  return absl::OkStatus();
}

absl::Status RunMatMul(const MatMulOptions& options) {
  FARKV_ASSIGN_OR_RETURN(const std::unique_ptr<MatMulBench> bench,
                         MatMulBench::Create(options));
  for (const Goal& goal : kGoals) {
    FARKV_RETURN_IF_ERROR(bench->RunRows(goal));
  }
  return RunQuantizedMatMul(options);
}

}  // namespace

absl::StatusOr<MatMulShape> CheckOptions(const MatMulOptions& options) {
  if (options.threads < 1 || options.rounds < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--threads %d and --rounds %d must both be at least 1",
                        options.threads, options.rounds));
  }
  return ParseShape(options.shape);
}

void RegisterMatMul(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<MatMulOptions>();
  CLI::App* command = app.add_subcommand(
      "matmul", "matrix products against oneDNN, a plain read and each other");
  command->add_option("--threads", options->threads, "of both contenders");
  command->add_option("--rounds", options->rounds, "interleaved repetitions");
  command->add_option("--shape", options->shape, "KxN, inputs x outputs");
  command->add_flag("--smoke", options->smoke, "one iteration, two weights");
  command->callback([&chosen, options] {
    chosen = [options] { return RunMatMul(*options); };
  });
}

}  // namespace farkv::bench

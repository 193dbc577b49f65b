// farkv-bench attention: one decode step of one layer against a plain read of
// as many bytes, with and without scoring. Sequences rotate over more than
// four last-level caches; their pages lie scattered, as T0 lines do.
#include "kernels/attention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_format.h"
#include "bench/bench_line.h"
#include "bench/paired.h"
#include "bench/plain_read.h"
#include "bench/subcommands.h"
#include "common/base/bf16.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "kernels/stream.h"

namespace farkv::bench {
namespace {

struct AttentionFlags {
  int threads = 1;
  int rounds = 21;
  bool smoke = false;
};

struct Shape {
  const char* name;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t group;
  int32_t tokens;
  double goal;  // of a plain read
};
constexpr Shape kShapes[] = {{"8x128-g4", 8, 128, 4, 4096, 0.80},
                             {"3x64-g3", 3, 64, 3, 16384, 0.70}};
constexpr double kScoringGoal = 0.92;
// A stored page: header and checksums before the payload, 4 KiB steps.
constexpr size_t kPageExtraBytes = 4096;

// The sequences of one shape and what attends over them.
class AttentionBench {
 public:
  static absl::StatusOr<std::unique_ptr<AttentionBench>> Create(
      const AttentionFlags& options, const Shape& shape);
  absl::Status Run();

 private:
  AttentionBench(const AttentionFlags& options, const Shape& shape)
      : options_(options), shape_(shape), pool_(options.threads) {
    geometry_.num_layers = 1;
    geometry_.num_kv_heads = shape.kv_heads;
    geometry_.head_dim = shape.head_dim;
  }

  absl::Status Init();
  void AddPage(std::byte* base, size_t index);
  double Attend(bool scored);
  double Read();
  size_t num_pages() const {
    return static_cast<size_t>(shape_.tokens) / kPageTokens;
  }
  size_t sequence_bytes() const {
    return num_pages() * geometry_.BlockBytes(kPageTokens);
  }

  const AttentionFlags options_;
  const Shape shape_;
  KvGeometry geometry_;
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  DeviceBuffer memory_;
  size_t num_sequences_ = 0;
  std::vector<uint64_t> live_;
  std::vector<::farkv::Run> runs_;
  std::vector<PageRuns> pages_;  // [sequence][page]
  std::vector<float> queries_;
  std::vector<float> out_;
  std::vector<int64_t> scores_;
  size_t next_ = 0;
  uint64_t read_sum_ = 0;
};

absl::StatusOr<std::unique_ptr<AttentionBench>> AttentionBench::Create(
    const AttentionFlags& options, const Shape& shape) {
  if (options.threads < 1 || options.rounds < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--threads %d and --rounds %d must both be at least 1",
                        options.threads, options.rounds));
  }
  std::unique_ptr<AttentionBench> bench(new AttentionBench(options, shape));
  FARKV_RETURN_IF_ERROR(bench->Init());
  return bench;
}

void AttentionBench::AddPage(std::byte* base, size_t index) {
  runs_[index] = {.keys = base,
                  .values = base + geometry_.ValueOffset(kPageTokens, 0, 0),
                  .head_stride = geometry_.HeadStride(kPageTokens),
                  .first_slot = 0,
                  .length = kPageTokens,
                  .source = RunSource::kT0Line};
  pages_[index] = {.page_index = static_cast<int32_t>(index % num_pages()),
                   .live = live_.data(),
                   .runs = {&runs_[index], 1}};
}

absl::Status AttentionBench::Init() {
  FARKV_RETURN_IF_ERROR(geometry_.Validate());
  FARKV_ASSIGN_OR_RETURN(device_, OpenDevice("cpu", pool_));
  stream_ = device_->NewStream();
  num_sequences_ =
      options_.smoke ? 2 : 4 * LastLevelCacheBytes() / sequence_bytes() + 2;
  const size_t count = num_sequences_ * num_pages();
  const size_t stride = geometry_.BlockBytes(kPageTokens) + kPageExtraBytes;
  FARKV_ASSIGN_OR_RETURN(memory_, device_->Allocate(count * stride));
  std::vector<size_t> place(count);
  std::iota(place.begin(), place.end(), size_t{0});
  for (size_t i = count; i > 1; --i) {
    std::swap(place[i - 1], place[SplitMix64At(1, i) % i]);
  }
  auto* element = reinterpret_cast<uint16_t*>(memory_.data());
  for (size_t i = 0; i < count * stride / sizeof(uint16_t); ++i) {
    element[i] =
        FloatToBf16(static_cast<float>(ToUnit(SplitMix64Mix(i))) * 2.0f - 1.0f);
  }
  live_.assign(static_cast<size_t>(shape_.kv_heads), ~uint64_t{0});
  runs_.resize(count);
  pages_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    AddPage(memory_.data() + place[i] * stride + kPageExtraBytes, i);
  }
  queries_.resize(
      static_cast<size_t>(shape_.kv_heads * shape_.group * shape_.head_dim));
  for (size_t i = 0; i < queries_.size(); ++i) {
    queries_[i] = static_cast<float>(ToUnit(SplitMix64At(2, i))) * 4.0f - 2.0f;
  }
  out_.resize(queries_.size());
  scores_.resize(static_cast<size_t>(shape_.tokens));
  return absl::OkStatus();
}

double AttentionBench::Attend(bool scored) {
  AttentionSequence sequence;
  sequence.num_rows = 1;
  sequence.first_position = shape_.tokens - 1;
  sequence.pages = std::span(pages_).subspan(
      (next_++ % num_sequences_) * num_pages(), num_pages());
  if (scored) sequence.scores = scores_;
  AttentionArgs args;
  args.geometry = geometry_;
  args.num_query_heads = shape_.kv_heads * shape_.group;
  args.scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
  args.queries = queries_.data();
  args.out = out_.data();
  args.sequences = {&sequence, 1};
  const auto start = std::chrono::steady_clock::now();
  Attention(*stream_, args);
  stream_->Synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

double AttentionBench::Read() {
  const size_t at = (next_++ % num_sequences_) * sequence_bytes();
  const auto start = std::chrono::steady_clock::now();
  read_sum_ += PlainRead(pool_, memory_.data() + at, sequence_bytes());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

absl::Status AttentionBench::Run() {
  const int rounds = options_.smoke ? 1 : options_.rounds;
  const Contender contenders[] = {[this] { return Attend(false); },
                                  [this] { return Attend(true); },
                                  [this] { return Read(); }};
  const std::vector<std::vector<double>> seconds =
      RunRounds(rounds, contenders);
  const double bytes = static_cast<double>(sequence_bytes());
  auto print = [&](const char* what, size_t contender, size_t yardstick,
                   const char* yardstick_name, double goal) {
    const Comparison compared = Compare(seconds[contender], seconds[yardstick]);
    BenchLine line;
    line.bench = "attention";
    line.case_name = absl::StrFormat("%s-%s", shape_.name, what);
    line.unit = "GB/s";
    line.value = bytes / compared.seconds * 1e-9;
    line.yardstick = {yardstick_name,
                      bytes / compared.yardstick_seconds * 1e-9};
    line.ratio = compared.ratio;
    line.goal = goal;
    line.runs = rounds;
    line.spread = compared.spread;
    line.params = {{"tokens", shape_.tokens},
                   {"threads", options_.threads},
                   {"sequences", num_sequences_},
                   {"kernel", KernelTarget()}};
    Print(line);
  };
  print("read", 0, 2, "plain read", shape_.goal);
  print("scored", 1, 0, "without scores", kScoringGoal);
  return absl::OkStatus();
}

absl::Status RunAttentionBench(const AttentionFlags& options) {
  for (const Shape& shape : kShapes) {
    FARKV_ASSIGN_OR_RETURN(const std::unique_ptr<AttentionBench> bench,
                           AttentionBench::Create(options, shape));
    FARKV_RETURN_IF_ERROR(bench->Run());
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterAttention(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<AttentionFlags>();
  CLI::App* command = app.add_subcommand(
      "attention", "bf16 decode attention against a plain read");
  command->add_option("--threads", options->threads, "of all contenders");
  command->add_option("--rounds", options->rounds, "interleaved repetitions");
  command->add_flag("--smoke", options->smoke, "one round, two sequences");
  command->callback([&chosen, options] {
    chosen = [options] { return RunAttentionBench(*options); };
  });
}

}  // namespace farkv::bench

// farkv-bench decode: tokens per second with half the tokens cold against the
// same engine with the full cache, interleaved (DESIGN 10). The context is
// forced token by token, so none of it is a pinned prompt.
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench_line.h"
#include "bench/engine_run.h"
#include "bench/paired.h"
#include "bench/program_dir.h"
#include "bench/subcommands.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

constexpr double kGoal = 0.95;

struct Options {
  std::string model;
  std::string bin_dir = ProgramDir();
  std::vector<int64_t> contexts = {512, 2048};
  int rounds = 5;
  int threads = 1;
  int batch = 1;
  int granularity = 64;
  double hbm_ratio = 0.5;
  bool smoke = false;
};

class DecodeBench {
 public:
  DecodeBench(const Options& options, NodeCluster& cluster)
      : options_(options), cluster_(cluster) {}

  absl::Status Run() {
    FARKV_ASSIGN_OR_RETURN(const ModelFiles files,
                           ModelFiles::Open(options_.model));
    FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
    for (int64_t context : options_.contexts) {
      MakeRequests(config.vocab_size, context);
      FARKV_RETURN_IF_ERROR(RunContext(context));
    }
    return absl::OkStatus();
  }

 private:
  void MakeRequests(int32_t vocab, int64_t context) {
    requests_.clear();
    for (int i = 0; i < options_.batch; ++i) {
      GenerationRequest request;
      const auto stream = static_cast<uint64_t>(i);
      request.prompt = RandomTokens(1, stream, 8, vocab);
      request.max_new_tokens = context;
      request.forced = RandomTokens(2, stream, context, vocab);
      requests_.push_back(std::move(request));
    }
  }

  EngineOptions BaseOptions() const {
    EngineOptions engine;
    engine.model = options_.model;
    engine.threads = options_.threads;
    engine.max_sequences = options_.batch;
    engine.placement.granularity = options_.granularity;
    engine.tiering.granularity = options_.granularity;
    engine.placement.hbm_ratio =
        static_cast<int32_t>(options_.hbm_ratio * kRatioOne + 0.5);
    return engine;
  }

  EngineOptions TieredOptions(ColdMode mode) const {
    EngineOptions engine = BaseOptions();
    UseCluster(cluster_, mode, engine);
    // Nobody looks at the time of a smoke run; however busy the machine, it
    // reads cold rows.
    if (options_.smoke) engine.await_stores_every = 16;
    return engine;
  }

  // A run whose attention read no cold row, or with the full cache some, has
  // measured something else.
  static absl::Status CheckTiers(std::optional<ColdMode> mode,
                                 const std::vector<RequestRun>& runs) {
    for (const RequestRun& run : runs) {
      const int64_t rows =
          ColdRows(mode.value_or(ColdMode::kAuto), run.end.tiers);
      if ((rows > 0) == mode.has_value()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(mode ? ColdModeName(*mode) : "full cache", ": ", rows,
                       " cold rows were read in ", run.end.completion_tokens,
                       " tokens; this measures nothing"));
    }
    return absl::OkStatus();
  }

  // Seconds over the second half of the context, where the tiers are at work.
  double Measure(const EngineOptions& engine, std::optional<ColdMode> mode,
                 RequestRun& last) {
    auto runs = RunRequests(engine, requests_);
    status_.Update(runs.ok() ? CheckTiers(mode, *runs) : runs.status());
    if (!status_.ok()) return 1.0;
    last = std::move(runs->front());
    const auto& seconds = last.token_seconds;
    return seconds.back() - seconds[seconds.size() / 2];
  }

  absl::Status RunContext(int64_t context) {
    const EngineOptions full = BaseOptions();
    constexpr ColdMode kModes[] = {ColdMode::kMap, ColdMode::kPrefetch,
                                   ColdMode::kPushdown};
    RequestRun last[std::size(kModes) + 1];
    std::vector<Contender> contenders = {
        [&] { return Measure(full, std::nullopt, last[0]); }};
    for (size_t i = 0; i < std::size(kModes); ++i) {
      contenders.push_back([&, i, tiered = TieredOptions(kModes[i])] {
        return Measure(tiered, kModes[i], last[i + 1]);
      });
    }
    const auto seconds =
        RunRounds(options_.smoke ? 1 : options_.rounds, contenders);
    FARKV_RETURN_IF_ERROR(status_);
    const double tokens =
        static_cast<double>(context - context / 2) * options_.batch;
    for (size_t i = 0; i < std::size(kModes); ++i) {
      Report(ColdModeName(kModes[i]), context, tokens,
             Compare(seconds[i + 1], seconds[0]), last[i + 1]);
    }
    return cluster_.AwaitSettled();
  }

  void Report(const char* mode, int64_t context, double tokens,
              const Comparison& measured, const RequestRun& run) const {
    const SequenceTierStats& tiers = run.end.tiers;
    BenchLine line;
    line.bench = "decode";
    line.case_name = absl::StrFormat("%s-%d", mode, context);
    line.value = tokens / measured.seconds;
    line.unit = "tokens/s";
    line.yardstick = {"full cache, same engine",
                      tokens / measured.yardstick_seconds};
    line.ratio = measured.ratio;
    line.goal = kGoal;
    line.runs = options_.smoke ? 1 : options_.rounds;
    line.spread = measured.spread;
    line.params = {{"hbm_ratio", options_.hbm_ratio},
                   {"granularity", options_.granularity},
                   {"batch", options_.batch},
                   {"threads", options_.threads}};
    line.metrics = {{"t0_tokens", tiers.t0_tokens},
                    {"t1_tokens", tiers.t1_tokens},
                    {"cold_rows_read", ColdRows(ColdMode::kAuto, tiers)},
                    {"t0_peak_bytes", tiers.t0_peak_bytes},
                    {"staging_peak_bytes", tiers.staging_peak_bytes},
                    {"late_fetches", tiers.late_fetches},
                    {"promoted_tokens", tiers.promoted_tokens}};
    Print(line);
  }

  const Options options_;
  NodeCluster& cluster_;
  std::vector<GenerationRequest> requests_;
  absl::Status status_;
};

absl::Status RunDecode(const Options& options) {
  NodeClusterOptions cluster_options;
  cluster_options.bin_dir = options.bin_dir;
  FARKV_ASSIGN_OR_RETURN(auto cluster, NodeCluster::Start(cluster_options));
  FARKV_RETURN_IF_ERROR(DecodeBench(options, cluster).Run());
  return cluster.Stop();
}

}  // namespace

void RegisterDecode(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "decode", "tokens/s with tiers against the full cache");
  command->add_option("--model", options->model, "directory or .gguf file")
      ->required();
  command->add_option("--bin-dir", options->bin_dir, "where the nodes lie");
  command->add_option("--context", options->contexts, "forced tokens")
      ->delimiter(',');
  command->add_option("--rounds", options->rounds, "interleaved repetitions");
  command->add_option("--threads", options->threads, "of the CPU kernels");
  command->add_option("--batch", options->batch, "sequences at once");
  command->add_option("--granularity", options->granularity, "64, 16 or 1");
  command->add_option("--hbm-ratio", options->hbm_ratio, "share kept in T0");
  command->add_flag("--smoke", options->smoke, "one round");
  command->callback([&chosen, options] {
    chosen = [options] { return RunDecode(*options); };
  });
}

}  // namespace farkv::bench

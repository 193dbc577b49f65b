// farkv-bench decode: tokens per second with half the tokens cold against the
// same engine with the full cache, interleaved (DESIGN 10). The context is
// forced token by token, so none of it is a pinned prompt. The mode "auto"
// chooses between prefetch and pushdown, and is compared with the better one
// as well.
#include <cstdio>
#include <map>
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
constexpr double kAutoGoal = 0.90;

absl::StatusOr<ColdMode> ModeOf(const std::string& name) {
  for (const ColdMode mode : {ColdMode::kMap, ColdMode::kPrefetch,
                              ColdMode::kPushdown, ColdMode::kAuto}) {
    if (name == ColdModeName(mode)) return mode;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--modes names \"", name, "\", no cold mode"));
}

struct DecodeFlags {
  std::string model;
  std::string bin_dir = ProgramDir();
  std::vector<std::string> nodes;  // empty: one is started
  std::vector<std::string> modes = {"map", "prefetch", "pushdown", "auto"};
  std::string link;  // what lies between, for the lines
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
  // `cluster`: null where the options name nodes.
  DecodeBench(const DecodeFlags& options, NodeCluster* cluster)
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
    if (cluster_ != nullptr) {
      UseCluster(*cluster_, mode, engine);
    } else {
      UseNodes(options_.nodes, mode, engine);
    }
    if (mode == ColdMode::kAuto) engine.tiering.map_dir.clear();
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
    std::vector<RequestRun> last(options_.modes.size() + 1);
    std::vector<Contender> contenders = {
        [&] { return Measure(full, std::nullopt, last[0]); }};
    for (size_t i = 1; i < last.size(); ++i) {
      FARKV_ASSIGN_OR_RETURN(const ColdMode mode,
                             ModeOf(options_.modes[i - 1]));
      contenders.push_back([&, i, mode, tiered = TieredOptions(mode)] {
        return Measure(tiered, mode, last[i]);
      });
    }
    const auto seconds =
        RunRounds(options_.smoke ? 1 : options_.rounds, contenders);
    FARKV_RETURN_IF_ERROR(status_);
    const double tokens =
        static_cast<double>(context - context / 2) * options_.batch;
    for (size_t i = 1; i < last.size(); ++i) {
      Print(LineOf(options_.modes[i - 1], context, tokens,
                   Compare(seconds[i], seconds[0]), last[i]));
    }
    PrintAuto(context, tokens, seconds, last);
    return cluster_ == nullptr ? absl::OkStatus() : cluster_->AwaitSettled();
  }

  // Against the better of the modes that it chooses from, where those ran.
  void PrintAuto(int64_t context, double tokens,
                 const std::vector<std::vector<double>>& seconds,
                 const std::vector<RequestRun>& runs) const {
    std::map<std::string, size_t> at;
    for (size_t i = 0; i < options_.modes.size(); ++i) {
      at[options_.modes[i]] = i + 1;
    }
    if (!at.contains("auto") || !at.contains("prefetch") ||
        !at.contains("pushdown")) {
      return;
    }
    const bool fetch =
        Median(seconds[at["prefetch"]]) < Median(seconds[at["pushdown"]]);
    const std::string better = fetch ? "prefetch" : "pushdown";
    BenchLine line = LineOf("auto-against-better", context, tokens,
                            Compare(seconds[at["auto"]], seconds[at[better]]),
                            runs[at["auto"]]);
    line.yardstick->name = better + ", same engine";
    line.goal = kAutoGoal;
    Print(line);
  }

  BenchLine LineOf(const std::string& name, int64_t context, double tokens,
                   const Comparison& measured, const RequestRun& run) const {
    const SequenceTierStats& tiers = run.end.tiers;
    BenchLine line;
    line.bench = "decode";
    line.case_name = absl::StrFormat("%s-%d", name, context);
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
    if (!options_.link.empty()) line.params["link"] = options_.link;
    line.metrics = {{"t0_tokens", tiers.t0_tokens},
                    {"t1_tokens", tiers.t1_tokens},
                    {"cold_rows_read", ColdRows(ColdMode::kAuto, tiers)},
                    {"cold_rows_pushed_down", tiers.cold_rows_pushed_down},
                    {"cold_bytes_fetched", tiers.cold_bytes_fetched},
                    {"t0_peak_bytes", tiers.t0_peak_bytes},
                    {"staging_peak_bytes", tiers.staging_peak_bytes},
                    {"late_fetches", tiers.late_fetches},
                    {"promoted_tokens", tiers.promoted_tokens}};
    return line;
  }

  const DecodeFlags options_;
  NodeCluster* const cluster_;
  std::vector<GenerationRequest> requests_;
  absl::Status status_;
};

absl::Status RunDecode(const DecodeFlags& options) {
  if (!options.nodes.empty()) return DecodeBench(options, nullptr).Run();
  NodeClusterOptions cluster_options;
  cluster_options.bin_dir = options.bin_dir;
  FARKV_ASSIGN_OR_RETURN(auto cluster, NodeCluster::Start(cluster_options));
  FARKV_RETURN_IF_ERROR(DecodeBench(options, &cluster).Run());
  return cluster.Stop();
}

}  // namespace

void RegisterDecode(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<DecodeFlags>();
  CLI::App* command = app.add_subcommand(
      "decode", "tokens/s with tiers against the full cache");
  command->add_option("--model", options->model, "directory or .gguf file")
      ->required();
  command->add_option("--bin-dir", options->bin_dir, "where the nodes lie");
  command
      ->add_option("--nodes", options->nodes,
                   "host:port of nodes that run; none is started then")
      ->delimiter(',');
  command
      ->add_option("--modes", options->modes,
                   "map, prefetch, pushdown, auto; auto does not map")
      ->delimiter(',');
  command->add_option("--link", options->link,
                      "what lies between, for the lines");
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

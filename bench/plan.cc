// farkv-bench plan: the time of a decode step as common/plan predicts it from
// measured rates, beside the time that the same engine takes (DESIGN 10). What
// the rates come from is another length than those that are predicted: kernels
// on the model's weights, a short run with the full cache for what a step costs
// beside them, and what the worker measures of node and link in two short runs.
#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench_line.h"
#include "bench/engine_run.h"
#include "bench/paired.h"
#include "bench/plan_node.h"
#include "bench/plan_rates.h"
#include "bench/program_dir.h"
#include "bench/subcommands.h"
#include "common/base/status_macros.h"
#include "common/plan/sizing.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

constexpr int64_t kPromptTokens = 8;
// Of the runs that rates come from.
constexpr int64_t kShortTokens = 128;
constexpr int64_t kNodeTokens = 512;

struct PlanFlags {
  std::string model;
  std::string bin_dir = ProgramDir();
  std::vector<std::string> nodes;  // empty: one is started; else one
  std::vector<std::string> modes = {"map", "prefetch", "pushdown"};
  std::string link;  // what lies between, for the lines
  std::vector<int64_t> contexts = {1024, 4096};
  int rounds = 5;
  int threads = 1;
  int batch = 1;
  int granularity = 64;
  double hbm_ratio = 0.5;
  bool smoke = false;

  int NumRounds() const { return smoke ? 1 : rounds; }
};

struct PlanMode {
  std::string name;
  StepMode step = StepMode::kFullCache;
  std::optional<ColdMode> cold;  // none: the full cache
};

absl::StatusOr<PlanMode> PlanModeOf(const std::string& name) {
  if (name == "map") return PlanMode{name, StepMode::kMap, ColdMode::kMap};
  if (name == "prefetch") {
    return PlanMode{name, StepMode::kPrefetch, ColdMode::kPrefetch};
  }
  if (name == "pushdown") {
    return PlanMode{name, StepMode::kPushdown, ColdMode::kPushdown};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--modes names \"", name, "\", must be map, prefetch or pushdown"));
}

class PlanBench {
 public:
  // `cluster`: null where the options name a node.
  PlanBench(const PlanFlags& options, NodeCluster* cluster)
      : options_(options), cluster_(cluster) {}

  absl::Status Run() {
    FARKV_ASSIGN_OR_RETURN(const ModelFiles files,
                           ModelFiles::Open(options_.model));
    FARKV_ASSIGN_OR_RETURN(config_, files.ReadConfig());
    shape_ = ShapeOf(config_);
    modes_ = {{"full", StepMode::kFullCache, std::nullopt}};
    for (const std::string& name : options_.modes) {
      FARKV_ASSIGN_OR_RETURN(PlanMode mode, PlanModeOf(name));
      modes_.push_back(std::move(mode));
    }
    FARKV_RETURN_IF_ERROR(MeasureRates());
    PrintRates();
    for (const int64_t context : options_.contexts) {
      FARKV_RETURN_IF_ERROR(RunContext(context));
    }
    return cluster_ == nullptr ? absl::OkStatus() : cluster_->AwaitSettled();
  }

 private:
  std::vector<GenerationRequest> Requests(int64_t context) const {
    std::vector<GenerationRequest> requests;
    for (int i = 0; i < options_.batch; ++i) {
      GenerationRequest request;
      const auto stream = static_cast<uint64_t>(i);
      request.prompt =
          RandomTokens(1, stream, kPromptTokens, config_.vocab_size);
      request.max_new_tokens = context;
      request.forced = RandomTokens(2, stream, context, config_.vocab_size);
      requests.push_back(std::move(request));
    }
    return requests;
  }

  EngineOptions EngineFor(const PlanMode& mode) const {
    EngineOptions engine;
    engine.model = options_.model;
    engine.threads = options_.threads;
    engine.max_sequences = options_.batch;
    engine.placement.granularity = options_.granularity;
    engine.tiering.granularity = options_.granularity;
    engine.placement.hbm_ratio = HbmRatio();
    if (!mode.cold) return engine;
    if (cluster_ != nullptr) {
      UseCluster(*cluster_, *mode.cold, engine);
    } else {
      UseNodes(options_.nodes, *mode.cold, engine);
    }
    if (options_.smoke) engine.await_stores_every = 16;
    return engine;
  }

  int32_t HbmRatio() const {
    return static_cast<int32_t>(std::lround(options_.hbm_ratio * kRatioOne));
  }

  // Seconds of a step over the last quarter; an error stays in `status_`. A run
  // that read no cold row has measured another mode.
  double StepSeconds(const PlanMode& mode, int64_t context) {
    const auto runs = RunRequests(EngineFor(mode), Requests(context));
    status_.Update(runs.status());
    if (!status_.ok()) return 1.0;
    last_ = runs->front().end.tiers;
    if (mode.cold && ColdRows(*mode.cold, last_) == 0) {
      status_.Update(absl::FailedPreconditionError(
          absl::StrCat(mode.name, ": no cold row was read in ", context,
                       " tokens; this measures nothing")));
    }
    const std::vector<double>& seconds = runs->front().token_seconds;
    const size_t from = seconds.size() * 3 / 4;
    return (seconds.back() - seconds[from]) /
           static_cast<double>(seconds.size() - 1 - from);
  }

  // In the middle of what StepSeconds looks at.
  Workload WorkloadAt(int64_t context) const {
    Workload workload;
    workload.tokens = kPromptTokens + context * 7 / 8;
    workload.prompt_tokens = kPromptTokens;
    workload.batch = options_.batch;
    workload.hbm_ratio = HbmRatio();
    workload.placement.granularity = options_.granularity;
    return workload;
  }

  absl::Status MeasureRates() {
    KernelOptions kernels;
    kernels.model = options_.model;
    kernels.threads = options_.threads;
    kernels.batch = options_.batch;
    kernels.rounds = options_.smoke ? 1 : 11;
    FARKV_ASSIGN_OR_RETURN(rates_, MeasureKernels(kernels));
    FARKV_RETURN_IF_ERROR(MeasureNode());
    const Contender short_run = [this] {
      return StepSeconds(modes_.front(), kShortTokens);
    };
    const double seconds =
        Median(RunRounds(options_.NumRounds(), {&short_run, 1}).front());
    FARKV_RETURN_IF_ERROR(status_);
    FARKV_ASSIGN_OR_RETURN(const Sizes sizes,
                           SizesOf(shape_, WorkloadAt(kShortTokens)));
    FARKV_ASSIGN_OR_RETURN(const StepPlan plan,
                           PlanStep(shape_, sizes, rates_, {}));
    rates_.overhead =
        std::max(absl::Seconds(seconds) - plan.full.step, absl::ZeroDuration());
    return absl::OkStatus();
  }

  // What the worker says of its node after a run of each mode.
  absl::Status MeasureNode() {
    const std::vector<GenerationRequest> requests = Requests(kNodeTokens);
    EngineOptions engine =
        EngineFor({"pushdown", StepMode::kPushdown, ColdMode::kPushdown});
    engine.tiering.heartbeat = absl::Milliseconds(500);
    FARKV_ASSIGN_OR_RETURN(
        const PeerStats pushed,
        MeasurePeer(engine, requests, absl::Milliseconds(5)));
    FARKV_ASSIGN_OR_RETURN(
        const PeerStats fetched,
        MeasurePeer(
            EngineFor({"prefetch", StepMode::kPrefetch, ColdMode::kPrefetch}),
            requests, absl::ZeroDuration()));
    const KvGeometry geometry = config_.Geometry(DType::kBf16);
    rates_.link_bytes_per_second = fetched.link_bytes_per_second;
    rates_.round_trip = pushed.round_trip;
    rates_.node_bytes_per_second = pushed.attend_rows_per_second *
                                   static_cast<double>(geometry.RowBytes());
    return rates_.Validate();
  }

  absl::Status RunContext(int64_t context) {
    FARKV_ASSIGN_OR_RETURN(const Sizes sizes,
                           SizesOf(shape_, WorkloadAt(context)));
    FARKV_ASSIGN_OR_RETURN(const StepPlan plan,
                           PlanStep(shape_, sizes, rates_, {}));
    std::vector<SequenceTierStats> tiers(modes_.size());
    std::vector<Contender> contenders;
    for (size_t i = 0; i < modes_.size(); ++i) {
      contenders.push_back([&, i] {
        const double seconds = StepSeconds(modes_[i], context);
        tiers[i] = last_;
        return seconds;
      });
    }
    const auto seconds = RunRounds(options_.NumRounds(), contenders);
    FARKV_RETURN_IF_ERROR(status_);
    for (size_t i = 0; i < modes_.size(); ++i) {
      PrintMode(modes_[i], context, plan, sizes, seconds[i], tiers[i]);
    }
    return absl::OkStatus();
  }

  BenchLine NewLine(const std::string& name) const {
    BenchLine line;
    line.bench = "plan";
    line.case_name = name;
    line.runs = options_.NumRounds();
    line.params = {{"hbm_ratio", options_.hbm_ratio},
                   {"granularity", options_.granularity},
                   {"batch", options_.batch},
                   {"threads", options_.threads}};
    if (!options_.link.empty()) line.params["link"] = options_.link;
    return line;
  }

  void PrintRates() const {
    BenchLine line = NewLine("rates");
    line.value = rates_.weight_bytes_per_second * 1e-9;
    line.unit = "GB/s of weights";
    line.metrics = {
        {"weight_bytes", rates_.weight_bytes},
        {"attention_gb_per_s", rates_.attention_bytes_per_second * 1e-9},
        {"node_gb_per_s", rates_.node_bytes_per_second * 1e-9},
        {"link_gb_per_s", rates_.link_bytes_per_second * 1e-9},
        {"round_trip_us", absl::ToDoubleMicroseconds(rates_.round_trip)},
        {"overhead_us", absl::ToDoubleMicroseconds(rates_.overhead)}};
    Print(line);
  }

  void PrintMode(const PlanMode& mode, int64_t context, const StepPlan& plan,
                 const Sizes& sizes, const std::vector<double>& seconds,
                 const SequenceTierStats& tiers) const {
    const ModeTime& predicted = plan.Of(mode.step);
    BenchLine line = NewLine(absl::StrFormat("%s-%d", mode.name, context));
    line.value = absl::ToDoubleMilliseconds(predicted.step);
    line.unit = "ms/step predicted";
    line.better = Better::kLower;
    line.yardstick = {"measured", Median(seconds) * 1e3};
    line.ratio = line.value / line.yardstick->value;
    line.spread = Spread(seconds);
    line.metrics = {{"error", *line.ratio - 1},
                    {"bottleneck", BottleneckName(predicted.bottleneck)},
                    {"link_bytes_per_step", predicted.link_bytes},
                    {"auto", StepModeName(plan.chosen)},
                    {"t0_tokens_predicted", sizes.split.t0},
                    {"t0_tokens_at_end", tiers.t0_tokens},
                    {"late_fetches", tiers.late_fetches}};
    Print(line);
  }

  const PlanFlags options_;
  NodeCluster* const cluster_;
  ModelConfig config_;
  ModelShape shape_;
  Rates rates_;
  std::vector<PlanMode> modes_;
  SequenceTierStats last_;  // of the last run
  absl::Status status_;
};

absl::Status Check(const PlanFlags& options) {
  if (options.nodes.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nodes names ", options.nodes.size(),
                     " nodes; the rates of one are measured"));
  }
  if (options.batch < 1 || options.rounds < 1 || options.threads < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--batch %d, --rounds %d and --threads %d must be at least 1",
        options.batch, options.rounds, options.threads));
  }
  if (!(options.hbm_ratio >= 0 && options.hbm_ratio < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hbm-ratio is ", options.hbm_ratio,
                     ", must be at least 0 and below 1"));
  }
  for (const int64_t context : options.contexts) {
    if (context >= kNodeTokens) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--context is ", context, ", must be at least ", kNodeTokens));
  }
  return absl::OkStatus();
}

absl::Status RunPlanBench(const PlanFlags& options) {
  FARKV_RETURN_IF_ERROR(Check(options));
  if (!options.nodes.empty()) return PlanBench(options, nullptr).Run();
  NodeClusterOptions cluster_options;
  cluster_options.bin_dir = options.bin_dir;
  FARKV_ASSIGN_OR_RETURN(auto cluster, NodeCluster::Start(cluster_options));
  FARKV_RETURN_IF_ERROR(PlanBench(options, &cluster).Run());
  return cluster.Stop();
}

}  // namespace

void RegisterPlan(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "predicted time of a decode step beside the measured one");
  command->add_option("--model", options->model, "directory or .gguf file")
      ->required();
  command->add_option("--bin-dir", options->bin_dir, "where the nodes lie");
  command
      ->add_option("--nodes", options->nodes,
                   "host:port of one that runs; none is started then")
      ->delimiter(',');
  command->add_option("--modes", options->modes, "map, prefetch, pushdown")
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
    chosen = [options] { return RunPlanBench(*options); };
  });
}

}  // namespace farkv::bench

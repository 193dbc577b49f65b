// farkv-bench exactness: every logit of every tiered run against the full
// cache, bit by bit (DESIGN P1). A case whose attention read no cold row, or
// in which a node served none, proves nothing and fails.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench_line.h"
#include "bench/engine_run.h"
#include "bench/program_dir.h"
#include "bench/subcommands.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/model_files.h"

namespace farkv::bench {
namespace {

struct ExactnessFlags {
  std::string model;
  std::string bin_dir = ProgramDir();
  std::string device = "cpu";
  int64_t tokens = 512;
  int64_t prompt = 24;
  int batch = 8;
  // The reasoner decodes faster than a page can be stored; a step takes at
  // least this long, so that stores keep up and cold rows appear.
  absl::Duration pace = absl::Milliseconds(3);
  // Shorter than the product's defaults: more plans and promotions per token.
  int64_t recent = 32;
  int64_t interval = 16;
  bool generate = false;
  bool sampled = false;
  std::string only;  // cases whose names contain it
  bool corrupt_one_row = false;
};

struct Case {
  int32_t ratio = 0;  // per 10,000
  ColdMode mode = ColdMode::kMap;
  int nodes = 1;
  int batch = 1;
  int granularity = 64;

  std::string Name() const {
    return absl::StrFormat("hbm%d-%s-nodes%d-batch%d-g%d", ratio / 100,
                           ColdModeName(mode), nodes, batch, granularity);
  }
};

// Each value of each dimension at least once, and the hardest corner.
std::vector<Case> SampledCases(int batch) {
  return {{10000, ColdMode::kPrefetch, 1, 1, 64},
          {5000, ColdMode::kMap, 1, batch, 1},
          {3000, ColdMode::kPrefetch, 2, batch, 64},
          {1000, ColdMode::kMap, 2, 1, 64},
          {1000, ColdMode::kPrefetch, 2, batch, 1},
          {3000, ColdMode::kPushdown, 1, 1, 64},
          {1000, ColdMode::kPushdown, 2, batch, 1}};
}

std::vector<Case> AllCases(const ExactnessFlags& options) {
  if (options.sampled) return SampledCases(options.batch);
  std::vector<Case> cases;
  for (int nodes : {1, 2}) {
    for (ColdMode mode :
         {ColdMode::kMap, ColdMode::kPrefetch, ColdMode::kPushdown}) {
      for (int granularity : {64, 1}) {
        for (int32_t ratio : {10000, 5000, 3000, 1000}) {
          for (int batch : {1, options.batch}) {
            cases.push_back({ratio, mode, nodes, batch, granularity});
          }
        }
      }
    }
  }
  return cases;
}

bool EveryNodeServed(const SequenceTierStats& tiers, int nodes) {
  const auto served = std::count_if(
      tiers.cold_rows_by_node.begin(), tiers.cold_rows_by_node.end(),
      [](const auto& node) { return node.second > 0; });
  return served == nodes;
}

struct Verdict {
  bool exact = false;   // no logit differs
  bool proves = false;  // cold rows were read, from every node
};

class ExactnessBench {
 public:
  explicit ExactnessBench(const ExactnessFlags& options) : options_(options) {}

  absl::Status Run() {
    std::vector<Case> cases = AllCases(options_);
    std::erase_if(cases, [this](const Case& c) {
      return !absl::StrContains(c.Name(), options_.only);
    });
    if (cases.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no case has a name with \"", options_.only, "\""));
    }
    FARKV_RETURN_IF_ERROR(MakeReference());
    std::vector<std::string> different, proved_nothing;
    for (const Case& c : cases) {
      FARKV_ASSIGN_OR_RETURN(const Verdict verdict, RunCase(c));
      if (!verdict.exact) different.push_back(c.Name());
      if (!verdict.proves) proved_nothing.push_back(c.Name());
    }
    if (!different.empty()) {
      return absl::DataLossError(absl::StrCat(different.size(),
                                              " cases are not exact, the first "
                                              "is ",
                                              different.front()));
    }
    if (!proved_nothing.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          proved_nothing.size(), " cases prove nothing, the first is ",
          proved_nothing.front(), ": see above"));
    }
    return absl::OkStatus();
  }

 private:
  EngineOptions BaseOptions(int granularity) const {
    EngineOptions engine;
    engine.model = options_.model;
    engine.device = options_.device;
    engine.max_sequences = options_.batch;
    engine.placement.granularity = granularity;
    engine.placement.recent = options_.recent;
    engine.placement.interval = options_.interval;
    engine.tiering.granularity = granularity;
    engine.tiering.t0_bytes = uint64_t{256} << 20;
    engine.tiering.skip_row_checks = options_.corrupt_one_row;
    return engine;
  }

  // The prompts and, unless they are generated, the continuations.
  std::vector<GenerationRequest> Requests(int32_t vocab) const {
    std::vector<GenerationRequest> requests;
    for (int i = 0; i < options_.batch; ++i) {
      GenerationRequest request;
      const auto stream = static_cast<uint64_t>(i);
      request.prompt = RandomTokens(1, stream, options_.prompt + i, vocab);
      request.max_new_tokens = options_.tokens;
      request.ignore_eos = true;
      if (!options_.generate) {
        request.forced = RandomTokens(2, stream, options_.tokens, vocab);
      }
      requests.push_back(std::move(request));
    }
    return requests;
  }

  absl::Status MakeReference() {
    FARKV_ASSIGN_OR_RETURN(const ModelFiles files,
                           ModelFiles::Open(options_.model));
    FARKV_ASSIGN_OR_RETURN(const ModelConfig config, files.ReadConfig());
    requests_ = Requests(config.vocab_size);
    // Each alone: the tiered batches are compared with these too.
    for (const GenerationRequest& request : requests_) {
      FARKV_ASSIGN_OR_RETURN(auto runs, RunRequests(BaseOptions(64), {request},
                                                    {.keep_logits = true}));
      reference_.push_back(std::move(runs.front()));
    }
    std::fprintf(stderr, "reference: %d requests of %d tokens, full cache\n",
                 options_.batch, static_cast<int>(options_.tokens));
    return absl::OkStatus();
  }

  absl::StatusOr<Verdict> RunCase(const Case& c) {
    NodeClusterOptions cluster_options;
    cluster_options.bin_dir = options_.bin_dir;
    cluster_options.num_nodes = c.nodes;
    cluster_options.faults = options_.corrupt_one_row;
    if (options_.corrupt_one_row) {
      cluster_options.extra_flags.push_back("--corrupt-one-row");
    }
    FARKV_ASSIGN_OR_RETURN(auto cluster, NodeCluster::Start(cluster_options));
    EngineOptions engine = BaseOptions(c.granularity);
    engine.placement.hbm_ratio = c.ratio;
    if (c.nodes > 1) {
      engine.tiering.stripe_tokens = 128;
      engine.tiering.spread = true;
    }
    UseCluster(cluster, c.mode, engine);
    // However busy the machine: a page is cold soon after it is full.
    engine.await_stores_every = static_cast<int>(options_.interval);
    const std::vector<GenerationRequest> requests(requests_.begin(),
                                                  requests_.begin() + c.batch);
    const auto runs = RunRequests(std::move(engine), requests,
                                  {.keep_logits = true, .pace = options_.pace});
    // A damaged row may leave no numbers to compare.
    if (options_.corrupt_one_row && absl::IsDataLoss(runs.status())) {
      std::fprintf(stderr, "%s: %s\n", c.Name().c_str(),
                   runs.status().ToString().c_str());
      return Verdict{.exact = false, .proves = true};
    }
    FARKV_RETURN_IF_ERROR(runs.status());
    FARKV_RETURN_IF_ERROR(cluster.Stop());
    return Report(c, *runs);
  }

  // Prints the line of the case.
  Verdict Report(const Case& c, const std::vector<RequestRun>& runs) const {
    int64_t compared = 0, different = 0, cold = 0, late = 0;
    int64_t promoted = 0, deferred = 0;
    double t0_share = 0.0;
    bool every_node_served = true;
    for (size_t i = 0; i < runs.size(); ++i) {
      const SequenceTierStats& tiers = runs[i].end.tiers;
      compared += static_cast<int64_t>(reference_[i].logits.size());
      different += Differences(reference_[i], runs[i]);
      cold += ColdRows(c.mode, tiers);
      late += tiers.late_fetches;
      promoted += tiers.promoted_tokens;
      deferred += tiers.deferred_drops;
      t0_share += static_cast<double>(tiers.t0_tokens) /
                  static_cast<double>(tiers.t0_tokens + tiers.t1_tokens) /
                  static_cast<double>(runs.size());
      every_node_served &= EveryNodeServed(tiers, c.nodes);
    }
    const bool all_hot = c.ratio == 10000;
    const bool proves = all_hot || (cold > 0 && every_node_served);
    BenchLine line;
    line.bench = "exactness";
    line.case_name = c.Name();
    line.value = static_cast<double>(different);
    line.unit = "different logits";
    line.better = Better::kLower;
    line.runs = 1;
    line.params = {{"device", options_.device},
                   {"tokens", options_.tokens},
                   {"pace_us", absl::ToInt64Microseconds(options_.pace)},
                   {"recent", options_.recent},
                   {"interval", options_.interval},
                   {"continuation", options_.generate ? "generated" : "forced"},
                   {"t0_share", t0_share}};
    line.metrics = {{"logits_compared", compared},
                    {"cold_rows_read", cold},
                    {"late_fetches", late},
                    {"promoted_tokens", promoted},
                    {"deferred_drops", deferred},
                    {"every_node_served", every_node_served}};
    Print(line);
    if (!proves) {
      std::fprintf(stderr, "%s: read %lld cold rows; every node served: %s\n",
                   c.Name().c_str(), static_cast<long long>(cold),
                   every_node_served ? "yes" : "no");
    }
    return {different == 0, proves};
  }

  static int64_t Differences(const RequestRun& reference,
                             const RequestRun& run) {
    if (run.logits.size() != reference.logits.size()) {
      return static_cast<int64_t>(reference.logits.size());
    }
    int64_t different = 0;
    for (size_t i = 0; i < run.logits.size(); ++i) {
      different +=
          std::memcmp(&run.logits[i], &reference.logits[i], sizeof(float)) != 0;
    }
    return different;
  }

  const ExactnessFlags options_;
  std::vector<GenerationRequest> requests_;
  std::vector<RequestRun> reference_;
};

}  // namespace

void RegisterExactness(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ExactnessFlags>();
  CLI::App* command = app.add_subcommand(
      "exactness", "every logit of tiered runs against the full cache");
  command->add_option("--model", options->model, "directory or .gguf file")
      ->required();
  command->add_option("--bin-dir", options->bin_dir, "where the nodes lie");
  command->add_option("--device", options->device, "cpu, fake or cuda");
  command->add_option("--tokens", options->tokens, "of each request");
  command->add_option("--batch", options->batch, "requests of a batch")
      ->check(CLI::Range(2, 64));
  command
      ->add_option_function<int>(
          "--pace-us",
          [options](int value) { options->pace = absl::Microseconds(value); },
          "least time of a step, so that stores keep up")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--recent", options->recent, "youngest tokens in T0");
  command->add_option("--interval", options->interval, "steps between plans");
  command->add_flag("--generate", options->generate,
                    "generate the continuation instead of forcing it");
  command->add_flag("--sampled", options->sampled, "a few of the cases");
  command->add_option("--case", options->only,
                      "only those whose names contain it");
  command->add_flag("--corrupt-one-row", options->corrupt_one_row,
                    "nodes flip a bit and checks are off: must fail");
  command->callback([&chosen, options] {
    chosen = [options] { return ExactnessBench(*options).Run(); };
  });
}

}  // namespace farkv::bench

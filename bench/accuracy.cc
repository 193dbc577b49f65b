// farkv-bench accuracy: how many programs are answered right when rows are
// placed, compressed or destroyed (ALGORITHMS 14). All rows run the same
// programs on the worker's engine; nodes are processes.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/accuracy_run.h"
#include "bench/bench_line.h"
#include "bench/program_dir.h"
#include "bench/subcommands.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace farkv::bench {
namespace {

// Full cache, before any row is judged.
constexpr double kGate = 0.95;
// A gap that is asserted, not only reported.
constexpr double kLeastGap = 0.40;

struct Options {
  AccuracyRunOptions run = {.models = "models", .pace = absl::Milliseconds(3)};
  std::string bin_dir = ProgramDir();
  std::vector<std::string> tasks = {"T2r-20",  "T2r-32", "T2r-44",
                                    "T3-none", "T3-16",  "T3-8",
                                    "T3-4",    "T4-5",   "T4-15"};
  std::vector<std::string> rows = {"*"};
  int programs = 200;
  uint64_t seed = 1;
  bool quick = false, sampled = false;

  void Apply() {
    if (quick) {
      tasks = {"T2r-32", "T4-15"};
      rows = {"tiers-10", "t2-8bit", "attention-cap-3", "vase-attn-v-fixed-25",
              "random-shared-fixed-25"};
      programs = 60;
    }
    if (sampled) {
      tasks = {"T2r-20"};
      rows = {"tiers-10", "tiers-50", "random-shared-fixed-25"};
      programs = 8;
      // Stores keep up even on a busy machine.
      run.pace = absl::Milliseconds(10);
    }
  }
  // Gaps hold for any number of programs that is not tiny.
  bool asserts_gaps() const { return quick || sampled; }
};

// The draws of a task depend on its name, not on its place in the list.
uint64_t StreamOf(const std::string& task) {
  uint64_t stream = 0;
  for (const char c : task) {
    stream = CounterDraw(stream, {static_cast<uint64_t>(c)});
  }
  return stream;
}

// Means over the programs of a row.
class Means {
 public:
  explicit Means(const RowOutcome& row) : row_(row) {}

  template <typename F>
  double Of(F value) const {
    double sum = 0;
    for (const ProgramOutcome& p : row_.programs) {
      sum += static_cast<double>(value(p));
    }
    return sum / static_cast<double>(row_.programs.size());
  }
  template <typename T>
  double Tier(T SequenceTierStats::*field) const {
    return Of([field](const auto& p) { return p.run.end.tiers.*field; });
  }

 private:
  const RowOutcome& row_;
};

class AccuracyBench {
 public:
  AccuracyBench(const Options& options, const NodeCluster& cluster)
      : options_(options), runner_(options.run, cluster) {}

  absl::Status Run(const std::vector<AccuracyRow>& rows) {
    for (const std::string& name : options_.tasks) {
      FARKV_RETURN_IF_ERROR(RunTask(name, rows));
    }
    if (failed_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        failed_.size(), " checks failed, the first: ", failed_[0]));
  }

 private:
  absl::Status RunTask(const std::string& name,
                       const std::vector<AccuracyRow>& rows) {
    FARKV_ASSIGN_OR_RETURN(const auto task, MakeAccuracyTask(name));
    std::vector<Program> programs;
    for (int i = 0; i < options_.programs; ++i) {
      programs.push_back(task->Make(ProgramDraws(options_.seed, StreamOf(name),
                                                 static_cast<uint64_t>(i))));
    }
    RowOutcome full;
    for (const AccuracyRow& row : rows) {
      auto outcome = runner_.Run(task->model(), programs, row);
      if (absl::IsUnimplemented(outcome.status())) {
        std::fprintf(stderr, "%s %s is left out: %s\n", name.c_str(),
                     row.name.c_str(),
                     std::string(outcome.status().message()).c_str());
        continue;
      }
      if (!outcome.ok()) {
        return absl::Status(outcome.status().code(),
                            absl::StrCat(name, " ", row.name, ": ",
                                         outcome.status().message()));
      }
      if (row.is_full()) full = *outcome;
      Report(name, row, *outcome, full);
      Check(name, row, *outcome, full);
      if (row.is_full() && full.answered() < kGate) {
        // What a policy loses cannot be told from what the model never knew.
        std::fprintf(stderr, "%s: gate missed, its other rows are left out\n",
                     name.c_str());
        return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  void Report(const std::string& task, const AccuracyRow& row,
              const RowOutcome& outcome, const RowOutcome& full) const {
    const auto count = static_cast<double>(outcome.programs.size());
    const double share = outcome.answered();
    const Interval interval = WilsonInterval(share, count);
    const PairedDifference difference = CompareAnswers(outcome, full);
    BenchLine line;
    line.bench = "accuracy";
    line.case_name = absl::StrCat(task, "/", row.name);
    line.value = 100 * share;
    line.unit = "% right";
    line.runs = 1;
    if (row.is_full()) {
      line.yardstick = {"all programs", 100};
      line.ratio = share;
      line.goal = kGate;
    } else {
      line.yardstick = {"full cache", 100 * full.answered()};
      line.ratio = share / full.answered();
      if (row.is_exact()) line.goal = 1.0;
    }
    line.params = {{"task", task},
                   {"row", row.name},
                   {"budget", row.budget_kind()},
                   {"t0_ratio", row.hbm_ratio / 100.0 / 100.0},
                   {"programs", outcome.programs.size()},
                   {"seed", options_.seed}};
    const Means means(outcome);
    line.metrics = {{"low_95", 100 * interval.low},
                    {"high_95", 100 * interval.high},
                    {"against_full", 100 * difference.mean},
                    {"against_full_95", 100 * difference.half_width}};
    AddShares(row, means, line);
    AddTiers(outcome, means, line);
    Print(line);
  }

  static void AddShares(const AccuracyRow& row, const Means& means,
                        BenchLine& line) {
    const double made = means.Of([](const auto& p) { return p.made; });
    const double right = means.Of([](const auto& p) { return p.right; });
    const double lookups = means.Of([](const auto& p) { return p.lookups; });
    const double present = means.Of([](const auto& p) { return p.present; });
    line.metrics["tokens_right"] = 100 * right / made;
    line.metrics["operand_present"] =
        row.policy.has_value() && lookups > 0 ? 100 * present / lookups : 100;
    line.metrics["destroyed_at_end"] =
        100 * means.Tier(&SequenceTierStats::destroyed_share);
    line.metrics["destroyed_average"] =
        100 * means.Tier(&SequenceTierStats::destroyed_share_average);
    line.metrics["tokens"] =
        means.Of([](const auto& p) { return p.run.tokens.size(); });
  }

  static void AddTiers(const RowOutcome& outcome, const Means& means,
                       BenchLine& line) {
    const double row_bytes = outcome.token_bytes;
    const double t0 = means.Tier(&SequenceTierStats::t0_tokens);
    const double t1 = means.Tier(&SequenceTierStats::t1_tokens);
    const double t2 = means.Tier(&SequenceTierStats::t2_tokens);
    line.metrics["t0_tokens"] = t0;
    line.metrics["t1_tokens"] = t1;
    line.metrics["t2_tokens"] = t2;
    line.metrics["t3_tokens"] = means.Tier(&SequenceTierStats::t3_tokens);
    line.metrics["t0_bytes"] = t0 * row_bytes;
    line.metrics["t1_bytes"] = t1 * row_bytes;
    line.metrics["t2_bytes"] = t2 * outcome.t2_token_bytes;
    line.metrics["cold_rows_read"] = means.Of(ColdRows);
  }

  static int64_t ColdRows(const ProgramOutcome& p) {
    const SequenceTierStats& tiers = p.run.end.tiers;
    return tiers.cold_rows_mapped + tiers.cold_rows_fetched +
           tiers.cold_rows_pushed_down;
  }

  void Check(const std::string& task, const AccuracyRow& row,
             const RowOutcome& outcome, const RowOutcome& full) {
    const auto fail = [&](const std::string& what) {
      failed_.push_back(absl::StrCat(task, " ", row.name, " ", what));
      std::fprintf(stderr, "failed: %s\n", failed_.back().c_str());
    };
    const Means means(outcome);
    if (row.is_exact() && !SameTokens(outcome, full)) {
      fail("gives other tokens than the full cache");
    }
    if (row.uses_nodes() && means.Of(ColdRows) == 0) {
      fail("read no cold row, so it proves nothing");
    }
    if (row.t2_ratio > 0 && means.Tier(&SequenceTierStats::t2_tokens) == 0) {
      fail("compressed nothing");
    }
    if (row.policy.has_value() &&
        means.Tier(&SequenceTierStats::destroyed_share) == 0) {
      fail("destroyed nothing");
    }
    if (!options_.asserts_gaps()) return;
    if (row.is_full() && full.answered() < kGate) {
      fail(absl::StrCat("answers ", 100 * full.answered(),
                        " % right, the gate is ", 100 * kGate));
    }
    // A chain without restatement loses by any fixed quarter; a fact stated
    // once, where all heads lose it together.
    const bool must_lose = absl::StartsWith(task, "T2r")
                               ? absl::EndsWith(row.name, "fixed-25")
                               : row.name == "random-shared-fixed-25";
    const double gap = full.answered() - outcome.answered();
    if (must_lose && gap < kLeastGap) {
      fail(absl::StrCat("is ", 100 * gap, " points below full, not ",
                        100 * kLeastGap, " or more"));
    }
  }

  const Options options_;
  const AccuracyRunner runner_;
  std::vector<std::string> failed_;
};

absl::Status RunAccuracy(Options options) {
  options.Apply();
  FARKV_ASSIGN_OR_RETURN(const auto rows, ChooseAccuracyRows(options.rows));
  NodeClusterOptions cluster_options;
  cluster_options.bin_dir = options.bin_dir;
  // Enough for a batch; pools are touched whole before a node is ready.
  cluster_options.t1_bytes = "128MiB";
  cluster_options.extra_flags = {"--t2-bytes=64MiB", "--huge-pages=false"};
  const bool needs_nodes =
      std::any_of(rows.begin(), rows.end(),
                  [](const AccuracyRow& row) { return row.uses_nodes(); });
  cluster_options.num_nodes = needs_nodes ? 2 : 0;
  FARKV_ASSIGN_OR_RETURN(auto cluster, NodeCluster::Start(cluster_options));
  FARKV_RETURN_IF_ERROR(AccuracyBench(options, cluster).Run(rows));
  return cluster.Stop();
}

}  // namespace

void RegisterAccuracy(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "accuracy", "right answers when rows are placed, rounded or destroyed");
  command->add_option("--models", options->run.models,
                      "folder that holds reasoner/ and ledger/");
  command->add_option("--bin-dir", options->bin_dir, "where the nodes lie");
  command->add_option("--tasks", options->tasks, "T2r-S, T3-C, T4-E")
      ->delimiter(',');
  command->add_option("--rows", options->rows, "names; * at the end takes all")
      ->delimiter(',');
  command->add_option("--programs", options->programs, "of each task")
      ->check(CLI::Range(1, 100000));
  command->add_option("--batch", options->run.batch, "sequences at once")
      ->check(CLI::Range(1, 256));
  command->add_option("--threads", options->run.threads, "of the CPU kernels");
  command->add_option("--seed", options->seed, "of the programs");
  command->add_flag("--quick", options->quick,
                    "6 rows, 2 tasks, 60 programs; wide gaps are asserted");
  command->add_flag("--sampled", options->sampled,
                    "4 rows, 1 task, 8 programs; likewise");
  command->callback([&chosen, options] {
    chosen = [options] { return RunAccuracy(*options); };
  });
}

}  // namespace farkv::bench

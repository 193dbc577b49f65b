// farkv-bench accuracy: how many programs are answered right, and how likely a
// text is found, when rows are placed, compressed or destroyed (ALGORITHMS 14).
// All rows of a task run the same programs on the worker's engine; nodes are
// processes.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/accuracy_lines.h"
#include "bench/accuracy_programs.h"
#include "bench/accuracy_run.h"
#include "bench/accuracy_text.h"
#include "bench/bench_line.h"
#include "bench/program_dir.h"
#include "bench/subcommands.h"
#include "common/base/status_macros.h"

namespace farkv::bench {
namespace {

// A gap that is asserted, not only reported.
constexpr double kLeastGap = 0.40;

struct AccuracyFlags {
  ProgramSource source = {.models = "models",
                          .language_model = "models/smollm2",
                          .text = "bench/texts/constitution.txt"};
  AccuracyRunOptions run = {.pace = absl::Milliseconds(3)};
  std::string bin_dir = ProgramDir();
  std::vector<std::string> tasks = {"T1-48",  "T2-24",  "T2-48", "T2r-20",
                                    "T2r-32", "T2r-44", "T3-4",  "T3-none",
                                    "T3-16",  "T3-8",   "T4-5",  "T4-15"};
  std::vector<std::string> rows = {"*"};
  std::string done;
  bool quick = false, sampled = false;

  void Apply() {
    if (quick) {
      tasks = {"T2r-32", "T4-15"};
      rows = {"tiers-10", "t2-8bit", "attention-cap-3", "vase-attn-v-fixed-25",
              "random-shared-fixed-25"};
      source.num_programs = 60;
    }
    if (sampled) {
      tasks = {"T2r-20"};
      rows = {"tiers-10", "tiers-50", "t2-8bit-no-exceptions",
              "random-shared-fixed-25"};
      source.num_programs = 8;
      // Stores keep up even on a busy machine.
      run.pace = absl::Milliseconds(10);
    }
  }
  // Gaps hold for any number of programs that is not tiny.
  bool asserts_gaps() const { return quick || sampled; }
};

absl::StatusOr<DoneRows> ReadDone(const std::string& path) {
  if (path.empty()) return DoneRows();
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot open \"", path, "\""));
  }
  return DoneRows::Parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

class AccuracyBench {
 public:
  AccuracyBench(const AccuracyFlags& options, const NodeCluster& cluster,
                DoneRows done)
      : options_(options),
        runner_(options.run, cluster),
        done_(std::move(done)) {}

  absl::Status Run() {
    for (const std::string& name : options_.tasks) {
      FARKV_RETURN_IF_ERROR(RunTask(name));
    }
    if (failed_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        failed_.size(), " checks failed, the first: ", failed_[0]));
  }

 private:
  // The rows that are still to be run; the full cache first, whose outcome the
  // others are compared with.
  std::vector<AccuracyRow> RowsLeft(const std::string& task,
                                    const ProgramSet& set,
                                    std::vector<AccuracyRow> rows) const {
    const auto is_left = [&](const AccuracyRow& row) {
      return !IsDone(task, set, row);
    };
    if (std::none_of(rows.begin(), rows.end(), is_left)) return {};
    std::vector<AccuracyRow> left;
    for (AccuracyRow& row : rows) {
      if (row.is_full() || is_left(row)) left.push_back(std::move(row));
    }
    return left;
  }

  bool IsDone(const std::string& task, const ProgramSet& set,
              const AccuracyRow& row) const {
    return done_.Contains(task, row.name, set.programs.size(),
                          options_.source.seed);
  }

  absl::Status RunTask(const std::string& name) {
    FARKV_ASSIGN_OR_RETURN(const ProgramSet set,
                           MakePrograms(name, options_.source));
    FARKV_ASSIGN_OR_RETURN(auto rows,
                           ChooseAccuracyRows(options_.rows, set.sizes));
    RowOutcome full;
    for (const AccuracyRow& row : RowsLeft(name, set, std::move(rows))) {
      auto outcome = runner_.Run(set, row);
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
      if (!IsDone(name, set, row)) {
        Print(MakeAccuracyLine(
            {name, set, row, *outcome, full, options_.source.seed}));
      }
      Check(name, set, row, *outcome, full);
      if (!row.is_full() || set.gate.answers == 0) continue;
      std::fprintf(stderr, "%s\n", GateReport(name, set, full).c_str());
      if (!PassesGate(set, full)) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void Check(const std::string& task, const ProgramSet& set,
             const AccuracyRow& row, const RowOutcome& outcome,
             const RowOutcome& full) {
    const auto fail = [&](const std::string& what) {
      failed_.push_back(absl::StrCat(task, " ", row.name, " ", what));
      std::fprintf(stderr, "failed: %s\n", failed_.back().c_str());
    };
    if (row.is_exact() && !SameTokens(outcome, full)) {
      fail("gives other tokens than the full cache");
    }
    if (row.uses_nodes() && ColdRowsRead(outcome) == 0) {
      fail("read no cold row, so it proves nothing");
    }
    if (row.is_rounded() && RoundedTokens(row, outcome) == 0) {
      fail("compressed nothing");
    }
    if (row.policy.has_value() && DestroyedShare(outcome) == 0) {
      fail("destroyed nothing");
    }
    if (row.selects() && GroupsReadShare(outcome) == 1) {
      fail("read every group");
    }
    if (!options_.asserts_gaps()) return;
    if (row.is_full() && !PassesGate(set, full)) fail("misses the gate");
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

  const AccuracyFlags options_;
  const AccuracyRunner runner_;
  const DoneRows done_;
  std::vector<std::string> failed_;
};

absl::Status RunAccuracy(AccuracyFlags options) {
  options.Apply();
  FARKV_ASSIGN_OR_RETURN(DoneRows done, ReadDone(options.done));
  FARKV_ASSIGN_OR_RETURN(const auto rows,
                         ChooseAccuracyRows(options.rows, kChainSizes));
  NodeClusterOptions cluster_options;
  cluster_options.bin_dir = options.bin_dir;
  // Enough for a batch; pools are touched whole before a node is ready.
  const bool has_text =
      std::any_of(options.tasks.begin(), options.tasks.end(), IsTextTask);
  cluster_options.t1_bytes = has_text ? "512MiB" : "128MiB";
  cluster_options.extra_flags = {
      has_text ? "--t2-bytes=256MiB" : "--t2-bytes=64MiB",
      "--huge-pages=false"};
  const bool needs_nodes =
      std::any_of(rows.begin(), rows.end(),
                  [](const AccuracyRow& row) { return row.uses_nodes(); });
  cluster_options.num_nodes = needs_nodes ? 2 : 0;
  FARKV_ASSIGN_OR_RETURN(auto cluster, NodeCluster::Start(cluster_options));
  FARKV_RETURN_IF_ERROR(AccuracyBench(options, cluster, std::move(done)).Run());
  return cluster.Stop();
}

}  // namespace

void RegisterAccuracy(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<AccuracyFlags>();
  CLI::App* command = app.add_subcommand(
      "accuracy", "right answers when rows are placed, rounded or destroyed");
  command->add_option("--models", options->source.models,
                      "folder that holds reasoner/ and ledger/");
  command->add_option("--model", options->source.language_model,
                      "of the tasks text and fact-E: directory or .gguf file");
  command->add_option("--text", options->source.text, "of these tasks");
  command->add_option("--bin-dir", options->bin_dir, "where the nodes lie");
  command
      ->add_option("--tasks", options->tasks,
                   "T1-S, T2-S, T2r-S, T3-C, T4-E, text, fact-E")
      ->delimiter(',');
  command->add_option("--rows", options->rows, "names; * at the end takes all")
      ->delimiter(',');
  command
      ->add_option("--programs", options->source.num_programs, "of each task")
      ->check(CLI::Range(1, 100000));
  command->add_option("--batch", options->run.batch, "sequences at once")
      ->check(CLI::Range(1, 256));
  command->add_option("--threads", options->run.threads, "of the CPU kernels");
  command->add_option("--seed", options->source.seed, "of the programs");
  command->add_option("--done", options->done,
                      "lines of an earlier run, whose rows are not run again");
  command->add_flag("--quick", options->quick,
                    "6 rows, 2 tasks, 60 programs; wide gaps are asserted");
  command->add_flag("--sampled", options->sampled,
                    "5 rows, 1 task, 8 programs; likewise");
  command->callback([&chosen, options] {
    chosen = [options] { return RunAccuracy(*options); };
  });
}

}  // namespace farkv::bench

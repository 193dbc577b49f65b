// Runs the programs of a task on an engine under the settings of a row, and
// scores what came out. Plain values and one class that starts processes.
#ifndef FARKV_BENCH_ACCURACY_RUN_H_
#define FARKV_BENCH_ACCURACY_RUN_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/accuracy_rows.h"
#include "bench/accuracy_task.h"
#include "bench/engine_run.h"
#include "bench/node_cluster.h"

namespace farkv::bench {

// What became of one program.
struct ProgramOutcome {
  bool answered = false;        // every answer right
  bool whole = false;           // every generated token right
  int64_t made = 0, right = 0;  // generated tokens
  // Lookups that were reached, and those of them that found a mention in some
  // layer and head.
  int64_t lookups = 0, present = 0;
  RequestRun run;
};

struct RowOutcome {
  std::vector<ProgramOutcome> programs;
  // All layers and heads of one token, in T0 or T1 and in T2.
  double token_bytes = 0, t2_token_bytes = 0;
  double answered() const;  // share
};

// 95 % interval of a share, by Wilson's score.
struct Interval {
  double low = 0, high = 0;
};
Interval WilsonInterval(double share, double count);
// Mean of the paired differences to `base` and the half-width of its interval.
struct PairedDifference {
  double mean = 0, half_width = 0;
};
PairedDifference CompareAnswers(const RowOutcome& row, const RowOutcome& base);
// Generated token by generated token.
bool SameTokens(const RowOutcome& a, const RowOutcome& b);

class ProgramEncoder;

struct AccuracyRunOptions {
  std::string models;  // holds reasoner/ and ledger/
  int batch = 16;
  int threads = 1;
  absl::Duration pace;  // with nodes; see RunSettings
};

class AccuracyRunner {
 public:
  // The cluster must outlive it.
  AccuracyRunner(AccuracyRunOptions options, const NodeCluster& cluster)
      : options_(std::move(options)), cluster_(cluster) {}

  absl::StatusOr<RowOutcome> Run(const std::string& model,
                                 const std::vector<Program>& programs,
                                 const AccuracyRow& row) const;

 private:
  EngineOptions Options(const std::string& model, const AccuracyRow& row) const;
  absl::Status RunBatch(EngineOptions engine, const ProgramEncoder& encoder,
                        std::span<const Program> programs,
                        const AccuracyRow& row, RowOutcome& outcome) const;

  const AccuracyRunOptions options_;
  const NodeCluster& cluster_;
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_RUN_H_

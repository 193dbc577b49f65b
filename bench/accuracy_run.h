// Runs the programs of a task on an engine under the settings of a row, and
// scores what came out (accuracy_score.cc). Plain values and one class that
// starts engines.
#ifndef FARKV_BENCH_ACCURACY_RUN_H_
#define FARKV_BENCH_ACCURACY_RUN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/accuracy_engine.h"
#include "bench/accuracy_programs.h"
#include "bench/accuracy_rounding.h"
#include "bench/accuracy_rows.h"
#include "bench/engine_run.h"
#include "bench/node_cluster.h"

namespace farkv::bench {

// What became of one program.
struct ProgramOutcome {
  bool answered = false;        // every answer right
  int64_t made = 0, right = 0;  // generated tokens
  // Lookups that were reached, and those of them that found a mention in some
  // layer and head.
  int64_t lookups = 0, present = 0;
  // Lookups of the program, and those that gave what the trace itself says at
  // one of the mentions, right or wrong: an earlier error is not theirs.
  int64_t asked = 0, found = 0;
  // By likelihood: -ln p of each token behind the prompt.
  std::vector<double> surprise;
  RequestRun run;
};

struct RowOutcome {
  std::vector<ProgramOutcome> programs;
  // All layers and heads of one token, in T0 or T1 and in T2.
  double token_bytes = 0, t2_token_bytes = 0;
  ValueRanges::Summary ranges;
  double answered() const;  // share
  double found() const;     // share of the lookups; 1 where there are none
  // Nats per token.
  double surprise() const;
};

// 95 % interval of a share, by Wilson's score.
struct Interval {
  double low = 0, high = 0;
};
Interval WilsonInterval(double share, double count);
// Mean of the paired differences to `base` and the half-width of its interval:
// of answers, by program, and of surprise, by token.
struct PairedDifference {
  double mean = 0, half_width = 0;
};
PairedDifference CompareAnswers(const RowOutcome& row, const RowOutcome& base);
PairedDifference CompareSurprise(const RowOutcome& row, const RowOutcome& base);
// Whether the full cache's outcome is good enough to run other rows, and a line
// that says why.
bool PassesGate(const ProgramSet& set, const RowOutcome& full);
std::string GateReport(const std::string& task, const ProgramSet& set,
                       const RowOutcome& full);
// Right tokens, answers and lookups of outcome.run.tokens.
void ScoreProgram(const EncodedProgram& program, ProgramOutcome& outcome);
// Generated token by generated token, and surprise by surprise.
bool SameTokens(const RowOutcome& a, const RowOutcome& b);
// -ln of the softmax of `logits` at `token`.
double Surprise(std::span<const float> logits, int32_t token);

class AccuracyRunner {
 public:
  // The cluster must outlive it.
  AccuracyRunner(const AccuracyRunOptions& options, const NodeCluster& cluster)
      : options_(options), cluster_(cluster) {}

  absl::StatusOr<RowOutcome> Run(const ProgramSet& set,
                                 const AccuracyRow& row) const;

 private:
  absl::Status RunBatch(RowEngine& row_engine, const ProgramSet& set,
                        std::span<const EncodedProgram> programs,
                        const AccuracyRow& row, RowOutcome& outcome) const;

  const AccuracyRunOptions options_;
  const NodeCluster& cluster_;
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_RUN_H_

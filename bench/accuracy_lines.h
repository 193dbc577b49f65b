// The lines of the accuracy bench: what came of a row, beside the full cache.
// Pure.
#ifndef FARKV_BENCH_ACCURACY_LINES_H_
#define FARKV_BENCH_ACCURACY_LINES_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/accuracy_programs.h"
#include "bench/accuracy_rows.h"
#include "bench/accuracy_run.h"
#include "bench/bench_line.h"

namespace farkv::bench {

// Of one row of one task. `full` is the outcome of the row "full", which may be
// this one.
struct AccuracyResult {
  std::string task;
  const ProgramSet& set;
  const AccuracyRow& row;
  const RowOutcome& outcome;
  const RowOutcome& full;
  uint64_t seed = 0;
};

BenchLine MakeAccuracyLine(const AccuracyResult& result);

// Means over a row's programs that checks need as well.
double ColdRowsRead(const RowOutcome& outcome);
double DestroyedShare(const RowOutcome& outcome);
// Of the groups of rows in layers that select; 1 where none does.
double GroupsReadShare(const RowOutcome& outcome);
// Tokens that attention reads in rounded form.
double RoundedTokens(const AccuracyRow& row, const RowOutcome& outcome);

// What an earlier run's lines say has been run: its cases, each with number of
// programs and seed.
class DoneRows {
 public:
  // INVALID_ARGUMENT naming the first line that is none of this bench.
  static absl::StatusOr<DoneRows> Parse(absl::string_view lines);
  bool Contains(const std::string& task, const std::string& row,
                size_t num_programs, uint64_t seed) const;

 private:
  std::set<std::string> keys_;
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_LINES_H_

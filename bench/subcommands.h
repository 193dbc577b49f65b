// The subcommands of farkv-bench. Each adds itself with its options and, when
// the command line chooses it, stores what main then runs. Adding one: a line
// here, one in main.cc's table, and its file in CMakeLists.txt.
#ifndef FARKV_BENCH_SUBCOMMANDS_H_
#define FARKV_BENCH_SUBCOMMANDS_H_

#include <functional>

#include "CLI/App.hpp"
#include "absl/status/status.h"

namespace farkv::bench {

// Prints its lines with bench_line.h; an error means that it could not run or
// that an exactness or fault check failed, never that a goal was missed.
using Run = std::function<absl::Status()>;

void RegisterAccuracy(CLI::App& app, Run& chosen);
void RegisterAttention(CLI::App& app, Run& chosen);
void RegisterDecode(CLI::App& app, Run& chosen);
void RegisterExactness(CLI::App& app, Run& chosen);
void RegisterMatMul(CLI::App& app, Run& chosen);
void RegisterPlan(CLI::App& app, Run& chosen);
void RegisterReasoner(CLI::App& app, Run& chosen);
void RegisterThroughput(CLI::App& app, Run& chosen);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_SUBCOMMANDS_H_

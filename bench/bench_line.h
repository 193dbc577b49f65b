// The one-line JSON that every subcommand prints per case (DESIGN 12):
//   bench, case, value, unit, better, yardstick {name, value}, ratio, goal,
//   met, runs, spread, params {}, metrics {}, commit, cpu
// in this order; yardstick, ratio, goal and met are null where there is none.
// Thread-compatible.
#ifndef FARKV_BENCH_BENCH_LINE_H_
#define FARKV_BENCH_BENCH_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "nlohmann/json.hpp"

namespace farkv::bench {

enum class Better { kHigher, kLower };

// What the value is compared with; same unit as the value.
struct Yardstick {
  std::string name;
  double value = 0;
};

struct BenchLine {
  std::string bench;      // the subcommand
  std::string case_name;  // printed as "case"; unique within a run
  double value = 0;       // median over the runs
  std::string unit;
  Better better = Better::kHigher;
  std::optional<Yardstick> yardstick;
  // How good the value is beside the yardstick, above 1 is better for both
  // directions of `better`; the median of per-round ratios, so not exactly
  // value / yardstick.
  std::optional<double> ratio;
  std::optional<double> goal;  // of the ratio; "met" is ratio >= goal
  int64_t runs = 0;            // rounds behind each median
  // Interquartile range over median: of the ratio where there is one, else of
  // the value.
  double spread = 0;
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
};

// What was measured and where; the same for every line of a run.
struct RunFacts {
  std::string commit;  // abbreviated, "-dirty" with uncommitted changes
  std::string cpu;     // model name
};

// The commit of this build and the CPU of this machine.
const RunFacts& ThisRun();

// "model name" of a /proc/cpuinfo text; "unknown" when there is none.
std::string CpuModel(const std::string& cpuinfo);

// One line without the newline. Numbers carry six significant digits; values
// that are not finite become null.
std::string ToJson(const BenchLine& line, const RunFacts& facts);

// Writes ToJson(line, ThisRun()) and a newline to stdout, and flushes.
void Print(const BenchLine& line);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_BENCH_LINE_H_

// The tables of `top`: made of what processes have said, the rates out of two
// samples of the same life of a process. Pure; thread-compatible.
#ifndef FARKV_ADMIN_CLI_TOP_TABLES_H_
#define FARKV_ADMIN_CLI_TOP_TABLES_H_

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "admin_cli/output.h"
#include "admin_cli/top_sample.h"

namespace farkv {

// How fast the counter `metric` rises. Nothing when it cannot be known: another
// life of the process, a counter that fell or is missing.
std::optional<double> RatePerSecond(
    const farkv::admin::v1::GetProcessResponse& before,
    const farkv::admin::v1::GetProcessResponse& now, const std::string& metric);

class TopTables {
 public:
  static constexpr size_t kTables = 3;

  // The newest samples. Rates go back to the last sample that a process has
  // answered.
  void Add(std::vector<ProcessSample> samples, absl::Time time);

  // Nodes, pools, workers. A process that did not answer has a row with its
  // last known name and its state.
  std::array<Output, kTables> Tables() const;
  // The same without rows.
  static std::array<Output, kTables> Empty();
  // One line about all of them.
  std::string Summary() const;
  // Tables and totals as one object.
  nlohmann::ordered_json Document(const std::string& sort_by) const;
  // As ForEachPeer: of the newest samples.
  int ExitCode() const;

 private:
  struct Known {
    std::string id;
    std::optional<farkv::admin::v1::GetProcessResponse> before, now;
  };
  struct Totals {
    int64_t nodes = 0, nodes_up = 0, workers = 0, workers_up = 0, sessions = 0;
    std::optional<double> stored, fetched, attended, promoted, late_rate,
        tokens;
    double late = 0;
  };
  // Null while it is not known.
  nlohmann::json Rate(const ProcessSample& sample, const char* metric) const;
  std::string IdOf(const ProcessSample& sample) const;
  nlohmann::json Transports(const ProcessSample& node) const;
  void AddNode(const ProcessSample& sample, Output& output) const;
  void AddWorker(const ProcessSample& sample, Output& output) const;
  Totals Sum() const;

  absl::Time time_;
  std::vector<ProcessSample> samples_;
  std::map<std::string, Known> known_;  // by address
};

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_TOP_TABLES_H_

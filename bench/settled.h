// What must hold of every process once it is quiet (DESIGN P6): all pages
// free, no session or lease left, every operation completed exactly once. Read
// from /metrics, as an operator would.
#ifndef FARKV_BENCH_SETTLED_H_
#define FARKV_BENCH_SETTLED_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/process/child_process.h"

namespace farkv::bench {

// GETs http://127.0.0.1:port/path and returns the whole response; what came of
// it within ten seconds.
std::string HttpGet(uint16_t port, const std::string& path);

// Values by series, as `farkv_node_pages{state="free"}`.
std::map<std::string, double> ReadMetrics(uint16_t port);

// Collects what has not been given back, or is still owed.
class Debts {
 public:
  void Add(std::string debt) { debts_.push_back(std::move(debt)); }
  void MustBeZero(const std::string& what, double value);
  void MustBeEqual(const std::string& what, double a, double b);
  // Empty when there are none.
  std::string Text() const;

 private:
  std::vector<std::string> debts_;
};

// Those of a node or a worker that serves /metrics at `port`.
std::string DebtsOfNode(uint16_t port);
std::string DebtsOfWorker(uint16_t port);

// Asks for `debts` until there are none. INTERNAL with the last ones after
// `timeout`, or when `process` ends first; null: it is this one.
absl::Status AwaitSettled(absl::FunctionRef<std::string()> debts,
                          ChildProcess* process,
                          absl::Duration timeout = absl::Seconds(30));

}  // namespace farkv::bench

#endif  // FARKV_BENCH_SETTLED_H_

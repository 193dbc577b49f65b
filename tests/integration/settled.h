// What must hold of every process once it is quiet (DESIGN P6): all pages
// free, no lease left, every operation completed exactly once. Read from
// /metrics, as an operator would.
#ifndef FARKV_TESTS_INTEGRATION_SETTLED_H_
#define FARKV_TESTS_INTEGRATION_SETTLED_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/process/child_process.h"

namespace farkv::testing {

// GETs http://127.0.0.1:port/path and returns the whole response.
std::string HttpGet(uint16_t port, const std::string& path);

// Values by series, as `farkv_node_pages{state="free"}`.
std::map<std::string, double> ReadMetrics(uint16_t port);

// What a node or a worker that serves /metrics at `port` has not given back
// yet; empty when nothing.
std::string DebtsOfNode(uint16_t port);
std::string DebtsOfWorker(uint16_t port);

// Reports a failure when `debts` is not empty after `timeout`, or when
// `process` ends first; null: it is this one.
void ExpectSettled(absl::FunctionRef<std::string()> debts,
                   ChildProcess* process,
                   absl::Duration timeout = absl::Seconds(30));

// Reports a failure unless the log of a worker that has ended says of each of
// `num_nodes` nodes that every request was answered exactly once.
void ExpectEvenAccounts(const std::string& worker_log, size_t num_nodes);

}  // namespace farkv::testing

#endif  // FARKV_TESTS_INTEGRATION_SETTLED_H_

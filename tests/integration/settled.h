// The checks of bench/settled.h as expectations of a test.
#ifndef FARKV_TESTS_INTEGRATION_SETTLED_H_
#define FARKV_TESTS_INTEGRATION_SETTLED_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "bench/settled.h"
#include "common/process/child_process.h"

namespace farkv::testing {

using bench::DebtsOfNode;
using bench::DebtsOfWorker;
using bench::HttpGet;
using bench::ReadMetrics;

// Reports a failure where AwaitSettled returns an error.
void ExpectSettled(absl::FunctionRef<std::string()> debts,
                   ChildProcess* process,
                   absl::Duration timeout = absl::Seconds(30));

// Reports a failure unless the log of a worker that has ended says of each of
// `num_nodes` nodes that every request was answered exactly once.
void ExpectEvenAccounts(const std::string& worker_log, size_t num_nodes);

}  // namespace farkv::testing

#endif  // FARKV_TESTS_INTEGRATION_SETTLED_H_

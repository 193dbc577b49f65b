// A memory node whose own messages suffer, and the faults of its worker that
// nothing else injects: a request keeps the fault-free tokens, the faults are
// met and counted, and nothing is left (DESIGN P4, P6). Real processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using worker::v1::GenerateRequest;

constexpr int32_t kTokens = 400;
// With the rates below each fault strikes among the first 400 messages, and no
// more than four of the first 1,500.
constexpr char kSeed[] = "--faults=seed=121,";

GenerateRequest LongRequest() {
  GenerateRequest request = TextRequest("a3;b4;c1;d2;|", kTokens);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

using Metrics = std::map<std::string, double>;

// Of all series of a metric; fails when there is none.
double Sum(const Metrics& metrics, const std::string& name) {
  double sum = 0;
  bool found = false;
  for (const auto& [series, value] : metrics) {
    if (series != name && series.rfind(name + "{", 0) != 0) continue;
    sum += value;
    found = true;
  }
  EXPECT_TRUE(found) << name;
  return sum;
}

// What both processes had counted when the request had ended.
struct Counted {
  Metrics node, worker;

  double RequestsRepeated() const {
    return Sum(worker, "farkv_worker_node_repeated_fetches_total") +
           Sum(worker, "farkv_worker_node_failed_stores_total");
  }
  // That took a fifth of a second at least.
  double SlowTokens() const {
    const std::string bucket = "farkv_worker_token_seconds_bucket{le=\"";
    double quick = 0;
    for (const auto& [series, value] : worker) {
      if (series.rfind(bucket, 0) != 0) continue;
      const double bound = std::strtod(&series[bucket.size()], nullptr);
      if (bound < 0.3) quick = std::max(quick, value);
    }
    return Sum(worker, "farkv_worker_token_seconds_count") - quick;
  }
  // Requests that reached the node's handlers over those that were sent.
  double RequestsMadeUp() const {
    return Sum(node, "farkv_node_transport_requests_total") -
           Sum(worker, "farkv_worker_transport_operations_submitted_total");
  }
};

class NodeFaultsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto full = WorkerProcess::Start({});
    ASSERT_TRUE(full.ok()) << full.status();
    reference_ = (*full)->Generate(LongRequest()).tokens;
    ASSERT_EQ(reference_.size(), static_cast<size_t>(kTokens));
    ExpectCleanEnd(**full, 0);
  }

  // T0 is too small for the context, so the node is needed all the time. Empty
  // faults: the program without any.
  Counted Run(const std::string& node_faults, const std::string& worker_faults,
              const std::string& fetch_timeout = "300ms") {
    bench::NodeClusterOptions options;
    options.bin_dir = BinDir();
    options.t1_bytes = "64MiB";
    options.faults = !node_faults.empty();
    if (options.faults) {
      options.extra_flags = {kSeed + node_faults};
    }
    auto cluster = bench::NodeCluster::Start(options);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    if (!cluster.ok()) return {};
    auto worker = WorkerProcess::Start(
        {"--memory-nodes=" + absl::StrJoin(cluster->Addresses(), ","),
         "--hbm-ratio=0.1", "--t0-bytes=768KiB", "--granularity=16",
         "--recent=32", "--interval=16", "--cold=prefetch",
         "--fetch-timeout=" + fetch_timeout, "--heartbeat=2s",
         kSeed + worker_faults},
        /*faults=*/true);
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (!worker.ok()) return {};
    const Generated generated =
        (*worker)->Generate(LongRequest(), absl::Seconds(120));
    Counted counted{ReadMetrics(cluster->nodes().front().metrics_port),
                    ReadMetrics((*worker)->metrics_port())};
    EXPECT_EQ(generated.tokens, reference_)
        << generated.status.error_message()
        << (generated.error ? generated.error->message() : "");
    EXPECT_TRUE(generated.finished.has_value());
    if (generated.finished) {
      EXPECT_GT(generated.finished->tiers().cold_rows_fetched(), 0);
    }
    ExpectCleanEnd(**worker, 1, Recoveries::kAllowed);
    ExpectCleanEnd(*cluster, absl::Seconds(90));
    return counted;
  }

  inline static std::vector<int32_t> reference_;
};

TEST_F(NodeFaultsTest, WhatANodeNeverGetsIsSentAgain) {
  EXPECT_GT(Run("drop=0.003", "drop=0").RequestsRepeated(), 0);
}

TEST_F(NodeFaultsTest, WhatReachesANodeDamagedIsDroppedAndSentAgain) {
  const Counted counted = Run("flip=0.002,truncate=0.002", "drop=0");

  EXPECT_GT(Sum(counted.node, "farkv_node_dropped_messages_total"), 0);
  EXPECT_GT(counted.RequestsRepeated(), 0);
}

TEST_F(NodeFaultsTest, WhatReachesANodeTwiceIsDoneOnce) {
  EXPECT_GT(Run("duplicate=0.2", "drop=0").RequestsMadeUp(), 0);
}

// Longer than a fetch may take.
TEST_F(NodeFaultsTest, ANodeThatHearsNothingForAWhileIsAskedAgain) {
  EXPECT_GT(Run("stall=0.003:400ms", "drop=0").RequestsRepeated(), 0);
}

// It gets what it waits for when the stall is over.
TEST_F(NodeFaultsTest, AWorkerThatHearsNothingForAWhileWaits) {
  const Counted counted = Run("", "stall=0.003:400ms", "5s");

  EXPECT_GT(counted.SlowTokens(), 0);
  EXPECT_LE(counted.RequestsMadeUp(), 0);  // nobody duplicates here
}

TEST_F(NodeFaultsTest, WhatAWorkerCannotSendItSendsAgain) {
  EXPECT_GT(Run("", "fail-nth=100").RequestsRepeated(), 0);
}

}  // namespace
}  // namespace farkv::testing

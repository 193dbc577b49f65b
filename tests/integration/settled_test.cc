// That the checks behind the other tests notice what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(SettledTest, WhatARunningRequestHoldsIsADebtOfItsNodeAndOfItsWorker) {
  bench::NodeClusterOptions options;
  options.bin_dir = BinDir();
  options.t1_bytes = "64MiB";
  auto cluster = bench::NodeCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::vector<std::string> flags = SlowWorkerFlags();
  flags.push_back("--memory-nodes=" + cluster->Addresses().front());
  auto worker = WorkerProcess::Start(flags, /*faults=*/true);
  ASSERT_TRUE(worker.ok()) << worker.status();
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(60));
  worker::v1::GenerateRequest request = TextRequest("a1;", 7000);
  request.mutable_stopping()->set_ignore_eos(true);
  const auto reader = (*worker)->generation().Generate(&context, request);
  worker::v1::GenerateResponse response;
  const uint16_t node = cluster->nodes().front().metrics_port;
  while (ReadMetrics(node)["farkv_node_pages{state=\"stored\"}"] == 0) {
    ASSERT_TRUE(reader->Read(&response));
  }

  const absl::Status of_node = cluster->AwaitSettled(absl::ZeroDuration());
  const std::string of_worker = DebtsOfWorker((*worker)->metrics_port());

  EXPECT_THAT(std::string(of_node.message()),
              AllOf(HasSubstr("node-0: "), ContainsRegex("pages stored: [1-9]"),
                    ContainsRegex("bytes used: [1-9]"),
                    ContainsRegex("; sessions: [1-9]")));
  EXPECT_THAT(of_worker,
              AllOf(HasSubstr("sequences: 1"), HasSubstr("T0 bytes: ")));
  context.TryCancel();
  reader->Finish();
  ExpectCleanEnd(**worker, 1);
  ExpectCleanEnd(*cluster);
}

TEST(SettledTest, AProcessThatDoesNotAnswerHasEverythingToShow) {
  constexpr uint16_t kNobody = 1;
  EXPECT_THAT(DebtsOfNode(kNobody), HasSubstr("no farkv_node_sessions"));
  EXPECT_THAT(DebtsOfWorker(kNobody),
              HasSubstr("no farkv_worker_running_sequences"));
  EXPECT_FALSE(bench::AwaitSettled([] { return DebtsOfNode(kNobody); }, nullptr,
                                   absl::Milliseconds(50))
                   .ok());
}

}  // namespace
}  // namespace farkv::testing

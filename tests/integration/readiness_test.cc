// What tells others that a program serves: the standard gRPC health service,
// and /readyz beside it.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

// HealthCheckResponse.ServingStatus, as its messages spell it: field 1, a
// varint.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

// What grpc.health.v1.Health/Check answers at 127.0.0.1:`port` for the whole
// server: an empty request. The library comes with the service and not with
// its stub.
std::string Health(uint16_t port) {
  grpc::GenericStub stub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(30));
  grpc::CompletionQueue queue;
  const grpc::Slice empty;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                    grpc::ByteBuffer(&empty, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  void* const tag = &answer;
  call->Finish(&answer, &status, tag);
  void* done = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&done, &ok) && ok && done == tag);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  if (!answer.Valid() || !answer.DumpToSingleSlice(&bytes).ok()) return "";
  return {bytes.begin(), bytes.end()};
}

bool IsReady(uint16_t metrics_port) {
  return HttpGet(metrics_port, "/readyz").find("200 OK") != std::string::npos;
}

// Until the program at these ports says so by both.
void AwaitHealth(uint16_t port, uint16_t metrics_port, bool serving) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (Health(port) != (serving ? kServing : kNotServing) ||
         IsReady(metrics_port) != serving) {
    ASSERT_LT(absl::Now(), end) << "not " << (serving ? "" : "un") << "ready";
  }
}

// Begins or takes back a drain; does not wait for its end.
void SetDraining(uint16_t admin_port, bool draining) {
  const auto admin = AdminAt(admin_port);
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(30));
  admin::v1::DrainRequest request;
  request.set_drain(draining);
  const auto stream = admin->Drain(&context, request);
  admin::v1::DrainResponse told;
  EXPECT_TRUE(stream->Read(&told));
  context.TryCancel();
  stream->Finish();
}

TEST(ReadinessTest, ANodeServesOnceItIsReadyAndNotWhileItDrains) {
  bench::NodeClusterOptions options;
  options.bin_dir = BinDir();
  options.t1_bytes = "64MiB";
  auto cluster = bench::NodeCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const auto& node = cluster->nodes().front();

  EXPECT_EQ(Health(node.port), kServing);
  EXPECT_EQ(Health(node.admin_port), kServing);
  EXPECT_TRUE(IsReady(node.metrics_port));
  SetDraining(node.admin_port, true);
  AwaitHealth(node.port, node.metrics_port, false);
  EXPECT_EQ(Health(node.admin_port), kServing);
  SetDraining(node.admin_port, false);
  AwaitHealth(node.port, node.metrics_port, true);

  ExpectCleanEnd(*cluster);
}

TEST(ReadinessTest, AWorkerServesOnceItIsReadyAndNotWhileItDrains) {
  auto started = WorkerProcess::Start({});
  ASSERT_TRUE(started.ok()) << started.status();
  WorkerProcess& worker = **started;

  EXPECT_EQ(Health(worker.port()), kServing);
  EXPECT_EQ(Health(worker.admin_port()), kServing);
  EXPECT_TRUE(IsReady(worker.metrics_port()));
  SetDraining(worker.admin_port(), true);
  AwaitHealth(worker.port(), worker.metrics_port(), false);
  EXPECT_EQ(Health(worker.admin_port()), kServing);
  SetDraining(worker.admin_port(), false);
  AwaitHealth(worker.port(), worker.metrics_port(), true);

  ExpectCleanEnd(worker, 0);
}

// The request keeps it from ending.
TEST(ReadinessTest, AWorkerThatWasToldToEndServesNoMoreWhileItDrains) {
  auto started = WorkerProcess::Start({"--t0-bytes=64MiB"});
  ASSERT_TRUE(started.ok()) << started.status();
  WorkerProcess& worker = **started;
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(120));
  auto request = TextRequest("a1;b2;", 7000);
  request.mutable_stopping()->set_ignore_eos(true);
  const auto reader = worker.generation().Generate(&context, request);
  worker::v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));

  worker.process().Signal(SIGTERM);
  AwaitHealth(worker.port(), worker.metrics_port(), false);
  context.TryCancel();
  while (reader->Read(&response)) {
  }

  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(worker.process().Wait(absl::Seconds(60)).value_or(-1), 0);
}

}  // namespace
}  // namespace farkv::testing

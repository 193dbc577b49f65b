// A worker works on eight sequences at the same time, and on no more than it
// was told (DESIGN 5.1).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using worker::v1::GenerateResponse;
using worker::v1::GetLoadResponse;

// Far more than a worker makes while a test looks at it.
constexpr int32_t kManyTokens = 7000;

// A request that is at work until it is cancelled.
class Stream {
 public:
  Stream(WorkerProcess& worker, int number) {
    SetDeadline(context_, absl::Seconds(120));
    auto request = TextRequest("a1;b2;", kManyTokens);
    request.set_request_id(absl::StrCat("stream-", number));
    request.mutable_stopping()->set_ignore_eos(true);
    reader_ = worker.generation().Generate(&context_, request);
  }
  // Waits for tokens; false when the stream has ended, or its request has.
  bool GetsTokens() {
    GenerateResponse response;
    return reader_->Read(&response) && response.has_delta();
  }
  grpc::Status Cancel() {
    context_.TryCancel();
    return reader_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<GenerateResponse>> reader_;
};

GetLoadResponse Load(WorkerProcess& worker) {
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(10));
  GetLoadResponse load;
  const grpc::Status status = worker.generation().GetLoad(&context, {}, &load);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return load;
}

void ExpectCancelled(std::vector<std::unique_ptr<Stream>>& streams) {
  for (auto& stream : streams) {
    EXPECT_EQ(stream->Cancel().error_code(), grpc::StatusCode::CANCELLED);
  }
}

// One after the other, the second would not get a token before the first has
// all of its 7,000.
TEST(AtOnceTest, EightSequencesRunTogetherAndTheNinthWaits) {
  auto worker =
      WorkerProcess::Start({"--max-sequences=8", "--t0-bytes=256MiB"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 8; ++i) {
    streams.push_back(std::make_unique<Stream>(**worker, i));
  }

  for (auto& stream : streams) ASSERT_TRUE(stream->GetsTokens());
  EXPECT_EQ(Load(**worker).running(), 8);
  EXPECT_EQ(Load(**worker).waiting(), 0);
  streams.push_back(std::make_unique<Stream>(**worker, 8));
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (Load(**worker).waiting() < 1) ASSERT_LT(absl::Now(), end);

  EXPECT_EQ(Load(**worker).running(), 8);
  EXPECT_EQ(
      ReadMetrics((*worker)->metrics_port())["farkv_worker_running_sequences"],
      8);
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(streams[i]->GetsTokens());
  ExpectCancelled(streams);
  ExpectCleanEnd(**worker, 0);
}

TEST(AtOnceTest, EightIsWhatAWorkerTakesByDefaultAtLeast) {
  auto worker = WorkerProcess::Start({});
  ASSERT_TRUE(worker.ok()) << worker.status();

  EXPECT_GE(Load(**worker).max_sequences(), 8);
  EXPECT_GE(Load(**worker).max_queue(), 1);

  ExpectCleanEnd(**worker, 0);
}

}  // namespace
}  // namespace farkv::testing

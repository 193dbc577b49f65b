// What the admin service lets wait for its one background thread.
#include "memory_node/service/admin_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/async/thread_executor.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

// A service whose replays wait until they are let go.
class AdminServiceTest : public ::testing::Test {
 protected:
  AdminServiceTest() {
    AdminService::Parts parts;
    parts.executor = &executor_;
    parts.clock = &Clock::Boottime();
    parts.replay = [this](uint64_t) -> absl::StatusOr<Replay> {
      go_on_.WaitForNotification();
      return Replay();
    };
    service_ = std::make_unique<AdminService>(parts, NodeIdentity());
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = admin::v1::AdminService::NewStub(
        server_->InProcessChannel(grpc::ChannelArguments()));
  }
  ~AdminServiceTest() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
    server_->Shutdown();
  }

  struct Call {
    grpc::ClientContext context;
    admin::v1::ReplayEvictionRequest request;
    admin::v1::ReplayEvictionResponse response;
    grpc::Status status;
    absl::Notification done;
  };
  std::unique_ptr<Call> BeginReplay() {
    auto call = std::make_unique<Call>();
    stub_->async()->ReplayEviction(&call->context, &call->request,
                                   &call->response,
                                   [raw = call.get()](grpc::Status status) {
                                     raw->status = std::move(status);
                                     raw->done.Notify();
                                   });
    return call;
  }

  absl::Notification go_on_;
  ThreadExecutor executor_{1};
  std::unique_ptr<AdminService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<admin::v1::AdminService::Stub> stub_;
};

TEST_F(AdminServiceTest, SoManyCallsMayWaitAndTheNextIsRefused) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < AdminService::kMaxWaiting + 1; ++i) {
    calls.push_back(BeginReplay());
  }
  // They may arrive in any order; one of them is answered at once.
  int refused = -1;
  while (refused < 0) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]->done.HasBeenNotified()) refused = static_cast<int>(i);
    }
    std::this_thread::yield();
  }
  const grpc::Status& status = calls[static_cast<size_t>(refused)]->status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("16 verifications"));

  go_on_.Notify();

  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i]->done.WaitForNotification();
    if (static_cast<int>(i) == refused) continue;
    EXPECT_TRUE(calls[i]->status.ok()) << calls[i]->status.error_message();
  }
  const auto later = BeginReplay();
  later->done.WaitForNotification();
  EXPECT_TRUE(later->status.ok()) << later->status.error_message();
}

}  // namespace
}  // namespace farkv

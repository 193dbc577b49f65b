// A step whose node answers heartbeats and is slow with rows is given up
// between two layers once nobody wants it.
#include <atomic>
#include <memory>
#include <thread>

#include "engine_over_nodes.h"

namespace farkv {
namespace {

class GiveUpTest : public EngineOverNodes {
 protected:
  GiveUpTest() { options_.tiering.prefetch_layers = 1; }
  ~GiveUpTest() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
    engine_ = nullptr;
  }

  // Runs a request until the node holds back its first rows.
  void StartSlowly() {
    slow_ = Request("slow", 100, 400);
    Start(ShareInSets(slow_), 1);
    a_.EditFetches([this](FetchReply&, std::vector<std::byte>&) {
      if (fetches_++ > 0) return;
      asked_.Notify();
      go_on_.WaitForNotification();
    });
  }

  GenerationRequest slow_;
  std::atomic<int> fetches_{0};
  absl::Notification asked_, go_on_;
};

TEST_F(GiveUpTest, ACancelledRequestDoesNotWaitForTheOtherLayersOfItsStep) {
  StartSlowly();
  const auto stream = Submit(slow_);
  asked_.WaitForNotification();

  EXPECT_TRUE(engine_->Abort("slow"));
  go_on_.Notify();

  EXPECT_EQ(Collect(*stream).end.reason, FinishReason::kCancelled);
  EXPECT_LT(fetches_, kGeometry.num_layers);
}

TEST_F(GiveUpTest, AnEngineThatStopsDoesNotWaitForThemEither) {
  StartSlowly();
  const auto stream = Submit(slow_);
  asked_.WaitForNotification();

  std::thread stop([this] { engine_->Stop(); });
  // Stop refuses new requests before it waits for the step.
  while (!absl::IsUnavailable(engine_->Submit(Request("x", 4, 4)).status())) {
  }
  go_on_.Notify();
  stop.join();

  EXPECT_EQ(Collect(*stream).end.reason, FinishReason::kCancelled);
  EXPECT_LT(fetches_, kGeometry.num_layers);
}

}  // namespace
}  // namespace farkv

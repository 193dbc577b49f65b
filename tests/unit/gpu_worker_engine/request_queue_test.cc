#include "gpu_worker/engine/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GenerationRequest Named(const std::string& id) {
  GenerationRequest request;
  request.request_id = id;
  request.prompt = {1};
  return request;
}

TEST(RequestQueueTest, AFullQueueRefusesNamingTheBound) {
  RequestQueue queue(1);
  ASSERT_TRUE(queue.Push(Named("a"), absl::Now()).ok());

  const auto refused = queue.Push(Named("b"), absl::Now());

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("is 1"));
}

TEST(RequestQueueTest, AnIdIsFreeAgainOnceForgotten) {
  RequestQueue queue(4);
  ASSERT_TRUE(queue.Push(Named("a"), absl::Now()).ok());
  EXPECT_EQ(queue.Push(Named("a"), absl::Now()).status().code(),
            absl::StatusCode::kAlreadyExists);
  queue.Pop();
  EXPECT_FALSE(queue.Push(Named("a"), absl::Now()).ok());

  queue.Forget("a");

  EXPECT_TRUE(queue.Push(Named("a"), absl::Now()).ok());
}

TEST(RequestQueueTest, CancelledAndLateRequestsLeaveTheQueue) {
  RequestQueue queue(4);
  const absl::Time now = absl::Now();
  GenerationRequest late = Named("late");
  late.deadline = now - absl::Seconds(1);
  ASSERT_TRUE(queue.Push(std::move(late), now).ok());
  ASSERT_TRUE(queue.Push(Named("cancelled"), now).ok());
  ASSERT_TRUE(queue.Push(Named("stays"), now).ok());
  EXPECT_TRUE(queue.Abort("cancelled"));
  EXPECT_FALSE(queue.Abort("unknown"));

  EXPECT_EQ(queue.PopExpired(now).size(), 2u);

  EXPECT_EQ(queue.Pop()->request.request_id, "stays");
}

TEST(RequestQueueTest, AQuestionIsAnsweredOnTheEnginesThread) {
  RequestQueue queue(4);
  std::thread engine([&queue] {
    while (queue.WaitForWork(false)) queue.AnswerQuestions();
  });
  std::thread::id answered_on;
  absl::Notification answered;

  const absl::Status asked = queue.Ask([&] {
    answered_on = std::this_thread::get_id();
    answered.Notify();
  });

  ASSERT_TRUE(asked.ok()) << asked;
  answered.WaitForNotification();
  EXPECT_EQ(answered_on, engine.get_id());
  queue.Stop();
  engine.join();
  EXPECT_EQ(queue.Ask([] {}).code(), absl::StatusCode::kUnavailable);
}

// A busy engine holds up nobody who asks.
TEST(RequestQueueTest, QuestionsThatNobodyTakesAreKeptUpToABound) {
  RequestQueue queue(4);
  int asked = 0;
  int answered = 0;
  absl::Status status;
  while ((status = queue.Ask([&] { ++answered; })).ok()) ++asked;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(asked)));

  queue.AnswerQuestions();

  EXPECT_EQ(answered, asked);
  EXPECT_TRUE(queue.Ask([] {}).ok());
}

TEST(RequestQueueTest, AWatcherIsToldHowManyAreLeftUntilItUnwatches) {
  RequestQueue queue(4);
  ASSERT_TRUE(queue.Push(Named("a"), absl::Now()).ok());
  ASSERT_TRUE(queue.Push(Named("b"), absl::Now()).ok());
  queue.Pop();  // it runs, which is not the end of it
  std::vector<int> told;
  std::vector<bool> draining;
  const auto watch = queue.Watch([&](RequestQueue::Left left) {
    told.push_back(left.requests);
    draining.push_back(left.draining);
  });
  ASSERT_TRUE(watch.ok());

  queue.SetDraining(true);
  queue.Forget("a");
  EXPECT_EQ(queue.StopAndPopAll().size(), 1u);

  EXPECT_THAT(told, ElementsAre(2, 2, 1, 0));
  EXPECT_THAT(draining, ElementsAre(false, true, true, true));
  queue.Unwatch(*watch);
  queue.SetDraining(false);
  EXPECT_EQ(told.size(), 4u);
}

TEST(RequestQueueTest, WatchersHaveABound) {
  RequestQueue queue(4);
  absl::StatusOr<uint64_t> last = uint64_t{0};
  uint64_t first = 0;
  for (int i = 0; last.ok() && i < 10000; ++i) {
    last = queue.Watch([](RequestQueue::Left) {});
    if (first == 0) first = *last;
  }
  EXPECT_EQ(last.status().code(), absl::StatusCode::kResourceExhausted);

  queue.Unwatch(first);

  EXPECT_TRUE(queue.Watch([](RequestQueue::Left) {}).ok());
}

TEST(RequestQueueTest, DrainingRefusesNewRequests) {
  RequestQueue queue(4);
  queue.SetDraining(true);

  EXPECT_EQ(queue.Push(Named("a"), absl::Now()).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace farkv

#include "gpu_worker/engine/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace farkv {
namespace {

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

  const absl::Status asked = queue.Ask(
      [&] { answered_on = std::this_thread::get_id(); }, absl::Seconds(10));

  EXPECT_TRUE(asked.ok()) << asked;
  EXPECT_EQ(answered_on, engine.get_id());
  queue.Stop();
  engine.join();
  EXPECT_EQ(queue.Ask([] {}, absl::Seconds(1)).code(),
            absl::StatusCode::kUnavailable);
}

TEST(RequestQueueTest, AQuestionThatNobodyTakesTimesOut) {
  RequestQueue queue(4);

  EXPECT_EQ(queue.Ask([] {}, absl::Milliseconds(1)).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(RequestQueueTest, DrainingRefusesNewRequests) {
  RequestQueue queue(4);
  queue.SetDraining(true);

  EXPECT_EQ(queue.Push(Named("a"), absl::Now()).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace farkv

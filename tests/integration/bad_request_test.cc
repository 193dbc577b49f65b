// Requests that cannot be served are refused by name, with INVALID_ARGUMENT
// where the request is at fault, and leave nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using worker::v1::GenerateRequest;

// 14 tokens: one for each character, behind the begin token.
constexpr char kPrompt[] = "a3;b4;c1;d2;|";

class BadRequestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto worker = WorkerProcess::Start({});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  void TearDown() override {
    if (worker_ == nullptr) return;
    // It still serves.
    const Generated next = worker_->Generate(TextRequest(kPrompt, 5));
    EXPECT_TRUE(next.status.ok()) << next.status.error_message();
    ExpectCleanEnd(*worker_, 0);
  }

  // Refused as a fault of the request; returns why.
  std::string Refusal(const GenerateRequest& request) {
    const Generated generated = worker_->Generate(request);
    EXPECT_EQ(generated.status.error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(generated.tokens, IsEmpty());
    return generated.status.error_message();
  }

  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(BadRequestTest, AFaultOfTheRequestIsAnInvalidArgument) {
  GenerateRequest request = TextRequest("", 5);
  EXPECT_THAT(Refusal(request), HasSubstr("prompt is empty"));
  request.mutable_token_ids();
  EXPECT_THAT(Refusal(request), HasSubstr("prompt is empty"));
  request.mutable_token_ids()->add_ids(100000);
  EXPECT_THAT(Refusal(request), HasSubstr("100000"));
  request = TextRequest(kPrompt, 1 << 20);
  EXPECT_THAT(Refusal(request), HasSubstr("1048590 positions"));
  request = TextRequest("a1;~", 5);
  EXPECT_THAT(Refusal(request), AllOf(HasSubstr("~"), HasSubstr("byte 3")));
  request = TextRequest(kPrompt, 5);
  request.mutable_forced_tokens()->add_ids(-2);
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("forced_tokens"), HasSubstr("-2")));
  request = TextRequest(kPrompt, 0);
  EXPECT_THAT(Refusal(request), HasSubstr("max_new_tokens"));
  request = TextRequest(kPrompt, 5);
  request.mutable_stopping()->set_min_new_tokens(6);
  EXPECT_THAT(Refusal(request), HasSubstr("min_new_tokens"));
  request.mutable_stopping()->set_min_new_tokens(0);
  request.mutable_stopping()->add_stop_token_ids(-1);
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("stop_token_ids"), HasSubstr("-1")));
}

TEST_F(BadRequestTest, ANumberOutOfItsRangeIsAnInvalidArgument) {
  const float nan = std::nanf("");
  for (const float value : {-1.0f, 101.0f, nan}) {
    GenerateRequest request = TextRequest(kPrompt, 5);
    request.mutable_sampling()->set_temperature(value);
    EXPECT_THAT(Refusal(request), HasSubstr("temperature")) << value;
  }
  for (const float value : {0.0f, -0.5f, 1.5f, nan}) {
    GenerateRequest request = TextRequest(kPrompt, 5);
    request.mutable_sampling()->set_top_p(value);
    EXPECT_THAT(Refusal(request), HasSubstr("top_p")) << value;
  }
  GenerateRequest request = TextRequest(kPrompt, 5);
  request.mutable_sampling()->set_top_k(-1);
  EXPECT_THAT(Refusal(request), HasSubstr("top_k"));
  for (const float value : {-0.1f, 1.5f, nan}) {
    request = TextRequest(kPrompt, 5);
    request.mutable_tiers()->set_hbm_ratio(value);
    EXPECT_THAT(Refusal(request), HasSubstr("hbm_ratio")) << value;
  }
}

TEST(TightWorkerTest, APromptThatCannotFitT0IsAnInvalidArgument) {
  auto worker = WorkerProcess::Start({"--t0-bytes=1MiB"});
  ASSERT_TRUE(worker.ok()) << worker.status();

  const Generated refused =
      (*worker)->Generate(TextRequest(std::string(2000, 'a'), 5));
  const Generated next = (*worker)->Generate(TextRequest(kPrompt, 5));

  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(
      refused.status.error_message(),
      AllOf(HasSubstr("--t0-bytes gives 1MiB"), HasSubstr("2006 tokens")));
  EXPECT_TRUE(next.status.ok()) << next.status.error_message();
  ExpectCleanEnd(**worker, 0);
}

}  // namespace
}  // namespace farkv::testing

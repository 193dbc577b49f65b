#include "common/base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace farkv {
namespace {

absl::Status ReturnIfError(absl::Status status, bool* passed) {
  FARKV_RETURN_IF_ERROR(status);
  *passed = true;
  return absl::OkStatus();
}

absl::StatusOr<int> SumOf(absl::StatusOr<std::unique_ptr<int>> a,
                          absl::StatusOr<std::unique_ptr<int>> b) {
  FARKV_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, std::move(a));
  FARKV_ASSIGN_OR_RETURN(const std::unique_ptr<int> second, std::move(b));
  return *first + *second;
}

TEST(ReturnIfErrorTest, PassesOkAndReturnsAnError) {
  bool passed = false;

  EXPECT_EQ(ReturnIfError(absl::AbortedError("lost"), &passed),
            absl::AbortedError("lost"));
  EXPECT_FALSE(passed);

  EXPECT_TRUE(ReturnIfError(absl::OkStatus(), &passed).ok());
  EXPECT_TRUE(passed);
}

TEST(AssignOrReturnTest, TakesMoveOnlyValuesAndReturnsTheFirstError) {
  EXPECT_EQ(SumOf(std::make_unique<int>(2), std::make_unique<int>(3)).value(),
            5);
  EXPECT_EQ(SumOf(std::make_unique<int>(2), absl::NotFoundError("b")).status(),
            absl::NotFoundError("b"));
  EXPECT_EQ(SumOf(absl::NotFoundError("a"), absl::NotFoundError("b")).status(),
            absl::NotFoundError("a"));
}

}  // namespace
}  // namespace farkv

#include "common/async/credit.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

TEST(CreditWindowTest, RefusesTheOperationBeyondTheBound) {
  CreditWindow window(2, 1000);

  EXPECT_TRUE(window.TryAcquire(1).ok());
  EXPECT_TRUE(window.TryAcquire(1).ok());
  EXPECT_EQ(window.TryAcquire(0).code(), absl::StatusCode::kResourceExhausted);

  window.Release(1);
  EXPECT_TRUE(window.TryAcquire(0).ok());
}

TEST(CreditWindowTest, RefusesTheBytesBeyondTheBound) {
  CreditWindow window(10, 1000);

  EXPECT_TRUE(window.TryAcquire(600).ok());
  EXPECT_EQ(window.TryAcquire(401).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(window.TryAcquire(400).ok());
  EXPECT_EQ(window.operations(), 2);
  EXPECT_EQ(window.bytes(), 1000u);
}

TEST(CreditWindowTest, AnOversizedOperationGoesAlone) {
  CreditWindow window(10, 1000);

  EXPECT_TRUE(window.TryAcquire(5000).ok());
  EXPECT_EQ(window.TryAcquire(1).code(), absl::StatusCode::kResourceExhausted);

  window.Release(5000);
  EXPECT_TRUE(window.TryAcquire(1).ok());
  EXPECT_EQ(window.TryAcquire(5000).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace farkv

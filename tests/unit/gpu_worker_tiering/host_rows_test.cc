#include "gpu_worker/tiering/host_rows.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace farkv {
namespace {

TEST(HostRowsTest, TheyAreAligned) {
  const auto rows = AllocateHostRows(100);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(rows->get()) % 64, 0u);
}

TEST(HostRowsTest, MoreThanThereIsIsRefusedWithTheSize) {
#ifdef FARKV_SANITIZED
  GTEST_SKIP() << "the sanitizers end the process at such a size";
#endif
  const auto rows = AllocateHostRows(size_t{1} << 62);
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(rows.status().message(),
            "no memory for 4611686018427387904 bytes of rows");
}

}  // namespace
}  // namespace farkv

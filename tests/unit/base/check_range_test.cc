#include "common/base/check_range.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace farkv {
namespace {

TEST(CheckRangeTest, BothBoundsAreAllowed) {
  EXPECT_TRUE(CheckRange("x", 1, 1, 3).ok());
  EXPECT_TRUE(CheckRange("x", 3, 1, 3).ok());
}

TEST(CheckRangeTest, AnErrorNamesWhatWasCompared) {
  EXPECT_EQ(CheckRange("--threads", 4, 1, 3),
            absl::InvalidArgumentError("--threads is 4, must lie in [1, 3]"));
  EXPECT_EQ(CheckRange<uint64_t>("size", 0, 1, 3).message(),
            "size is 0, must lie in [1, 3]");
  EXPECT_EQ(CheckRange("--lease", absl::Milliseconds(5), absl::Seconds(1),
                       absl::Hours(24))
                .message(),
            "--lease is 5ms, must lie in [1s, 24h]");
}

}  // namespace
}  // namespace farkv

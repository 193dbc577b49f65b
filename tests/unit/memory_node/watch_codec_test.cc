#include "memory_node/service/watch_codec.h"

#include "common/base/session_handle.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WatchCodecTest, AWatcherLearnsHandlesOfItsTenantAndNoWholeId) {
  SessionId mine, others;
  for (size_t i = 0; i < mine.bytes.size(); ++i) {
    mine.bytes[i] = static_cast<uint8_t>(0x41 + i);
    others.bytes[i] = static_cast<uint8_t>(0x61 + i);
  }

  const auto response =
      ToProto({.pressure = true, .draining = false, .sessions = 1},
              {{mine, "tenant"}, {others, "another"}}, "tenant", Epoch{7}, {});

  ASSERT_EQ(response.revoked_session_ids_size(), 1);
  EXPECT_EQ(response.revoked_session_ids(0), SessionHandleBytes(mine));
  EXPECT_EQ(response.epoch(), 7u);
  EXPECT_TRUE(response.pressure());
  const std::string wire = response.SerializeAsString();
  EXPECT_THAT(wire, Not(HasSubstr(mine.ToBytes().substr(0, 5))));
  EXPECT_THAT(wire, Not(HasSubstr(others.ToBytes().substr(0, 4))));
}

TEST(WatchCodecTest, FreeBytesAreWhatNobodyHolds) {
  PagePoolStats pool;
  pool.capacity_bytes = 100;
  pool.used_bytes = 30;
  pool.quarantined_bytes = 20;
  pool.free_pages = 5;

  const auto response = ToProto({}, {}, "tenant", Epoch{7}, pool);

  EXPECT_EQ(response.free_bytes(), 50u);
  EXPECT_EQ(response.free_pages(), 5u);
}

}  // namespace
}  // namespace farkv

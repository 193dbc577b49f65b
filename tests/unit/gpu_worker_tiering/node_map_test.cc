// What a node's map does when its slabs cannot be had.
#include "gpu_worker/tiering/node_map.h"

#include <optional>

#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/unit/mapping/map_server_fixture.h"

namespace farkv {
namespace {

constexpr uint32_t kNoSuchSlab = testing::kSlabId + 1;
constexpr size_t kPageBytes = 4096;

class NodeMapTest : public testing::MapServerFixture {
 protected:
  NodeMapTest()
      : server_(StartOrDie()),
        map_(server_->path(), absl::Seconds(20), clock_) {}

  absl::StatusOr<MappedPage> Find(uint32_t slab_id, uint64_t offset = 0) {
    return map_.Find(slab_id, offset, kPageBytes,
                     [this]() -> absl::StatusOr<NodeMap::Ticket> {
                       ++tickets_;
                       return NodeMap::Ticket{SessionId(), "good"};
                     });
  }

  ManualClock clock_;
  std::unique_ptr<MapServer> server_;
  NodeMap map_;
  int tickets_ = 0;
};

TEST_F(NodeMapTest, ASlabIsAskedForOnceWhileAPageRefersToIt) {
  absl::StatusOr<MappedPage> first = Find(testing::kSlabId);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Find(testing::kSlabId, kPageBytes).ok());
  EXPECT_EQ(tickets_, 1);

  first = MappedPage();
  ASSERT_TRUE(Find(testing::kSlabId).ok());
  EXPECT_EQ(tickets_, 2);
}

TEST_F(NodeMapTest, AfterAFailureNoSlabIsAskedForUntilTheRetryIsDue) {
  const absl::Status failure = Find(kNoSuchSlab).status();
  ASSERT_EQ(failure.code(), absl::StatusCode::kNotFound);

  EXPECT_EQ(Find(testing::kSlabId).status(), failure);
  clock_.Advance(NodeMap::kRetry - absl::Milliseconds(1));
  EXPECT_EQ(Find(testing::kSlabId).status(), failure);
  EXPECT_EQ(tickets_, 1);

  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Find(testing::kSlabId).ok());
  EXPECT_EQ(tickets_, 2);
}

TEST_F(NodeMapTest, ASlabThatIsMappedIsFoundWhileOthersCannotBeHad) {
  const absl::StatusOr<MappedPage> page = Find(testing::kSlabId);
  ASSERT_TRUE(page.ok());
  ASSERT_FALSE(Find(kNoSuchSlab).ok());

  EXPECT_TRUE(Find(testing::kSlabId, kPageBytes).ok());
}

}  // namespace
}  // namespace farkv

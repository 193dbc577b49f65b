// A step that would fetch more of one layer from a node than fits is refused
// before it asks for anything.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "kv_cache_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class StepSizeTest : public KvCacheTest {
 protected:
  // Rows of `tokens` in one layer.
  uint64_t LayerBytes(size_t tokens) const {
    return geometry_.BlockBytes(tokens);
  }

  // One step over them, which must be refused: the reason.
  std::string Refusal(KvCache& cache, std::vector<StepRows> rows) {
    const int64_t tokens = cache.num_tokens(rows.front().sequence);
    const int fetched = node_.fetched_pages();
    const absl::Status status = cache.Begin(rows, *stream_);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_EQ(node_.fetched_pages(), fetched);
    EXPECT_EQ(cache.num_tokens(rows.front().sequence), tokens);
    return std::string(status.message());
  }

  TestNode node_{network_, geometry_, "node"};
};

TEST_F(StepSizeTest, SequencesThatAreTooLargeTogetherCanRunApart) {
  TieringOptions options = Options();
  options.max_layer_fetch_bytes = LayerBytes(200);
  auto cache = Make(options, {&node_});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId first = MakeCold(*cache, harness, 200, "first");
  const SequenceId second = MakeCold(*cache, harness, 200, "second");
  cache->Park(first);
  cache->Park(second);
  ASSERT_EQ(cache->Stats(first).t1_tokens, 192);
  ASSERT_EQ(cache->Stats(second).t1_tokens, 192);

  const std::string why = Refusal(*cache, {{first, 1}, {second, 1}});

  EXPECT_THAT(why, HasSubstr("2 sequences would fetch 48KiB of one layer from "
                             "node node"));
  EXPECT_TRUE(harness.Step(first, 1).ok());
  EXPECT_TRUE(harness.Step(second, 1).ok());
  EXPECT_GT(node_.fetched_pages(), 0);
}

TEST_F(StepSizeTest, ASequenceThatIsTooLargeAloneIsNamed) {
  TieringOptions options = Options();
  options.max_layer_fetch_bytes = LayerBytes(100);
  auto cache = Make(options, {&node_});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId large = MakeCold(*cache, harness, 160, "large");
  const SequenceId small = cache->Open(TestSpec(16, 20, 100, "small")).value();
  ASSERT_TRUE(harness.Step(small, 20).ok());
  cache->Park(large);
  ASSERT_EQ(cache->Stats(large).t1_tokens, 128);

  const std::string why = Refusal(*cache, {{small, 1}, {large, 1}});

  EXPECT_THAT(why, HasSubstr("sequence large would fetch 16KiB of one layer "
                             "from node node"));
  EXPECT_TRUE(harness.Step(small, 1).ok());
}

}  // namespace
}  // namespace farkv

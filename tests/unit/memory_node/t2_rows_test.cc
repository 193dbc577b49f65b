#include "memory_node/data/t2_rows.h"

#include <cstring>

#include "common/base/crc32c.h"
#include "common/page/t2_codec.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

class T2RowsTest : public DirectoryFixture {
 protected:
  T2RowsTest() {
    Open();
    ReserveAndStore(1, {0, 0});
    EXPECT_TRUE(Compress(2, ToT2({0, 0}, 4)).status.ok());
    page_ = directory_.PinStored(TestSession(1), {0, 0}).value();
  }
  std::span<const std::byte> Part(size_t head) const {
    const size_t bytes = T2HeadLayout::Of(kSmallGeometry, 4).head_bytes;
    return {page_.pin.data() + PageLayout::T2(kSmallGeometry, 4).header_bytes +
                head * bytes,
            bytes};
  }

  StoredPage page_;
};

TEST_F(T2RowsTest, AHeadWithoutWantedRowsIsLeftOut) {
  std::vector<std::byte> packed(Part(1).size());
  std::vector<uint32_t> crcs;

  GatherT2Heads(kSmallGeometry, 4, std::vector<uint64_t>{0, 2},
                page_.pin.data(), packed.data(), crcs);

  EXPECT_EQ(std::memcmp(packed.data(), Part(1).data(), packed.size()), 0);
  EXPECT_THAT(crcs, ::testing::ElementsAre(Crc32c(packed)));
}

TEST_F(T2RowsTest, RowsLieAtTheirSlotsAsTheCodecDecodesThem) {
  const KvGeometry& g = kSmallGeometry;
  std::vector<std::byte> block(g.BlockBytes(kPageTokens));
  for (int head = 0; head < 2; ++head) {
    ASSERT_TRUE(DecodeT2Rows(g, 4, head, page_.pin.data(), block.data()).ok());
  }
  std::vector<std::byte> key(g.VectorBytes()), value(g.VectorBytes());
  for (size_t head = 0; head < 2; ++head) {
    for (size_t slot = 0; slot < 64; ++slot) {
      ASSERT_TRUE(DecodeT2Head(g, 4, Part(head), uint64_t{1} << slot,
                               key.data(), value.data())
                      .ok());
      EXPECT_EQ(std::memcmp(block.data() + g.KeyOffset(64, head, slot),
                            key.data(), key.size()),
                0);
      EXPECT_EQ(std::memcmp(block.data() + g.ValueOffset(64, head, slot),
                            value.data(), value.size()),
                0);
    }
  }
}

}  // namespace
}  // namespace farkv

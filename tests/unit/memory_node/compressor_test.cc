#include "memory_node/compress/compressor.h"

#include <cstring>
#include <vector>

#include "common/page/t2_codec.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr KvGeometry kGeometry = kSmallGeometry;

PageIdentity Identity(int bits) {
  PageIdentity identity{TestSession(3), 1, 2, Generation{9}};
  identity.tier = bits == 0 ? Tier::kT1 : Tier::kT2;
  identity.t2_bits = bits;
  return identity;
}

struct Page {
  explicit Page(int bits)
      : words((bits == 0 ? PageLayout::T1(kGeometry)
                         : PageLayout::T2(kGeometry, bits))
                  .stride /
              8) {
    PageHeader header(data(), kGeometry);
    header.set_generation(Generation{9});
    header.Format(Identity(bits), kGeometry);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  PageHeader header() { return {data(), kGeometry}; }

  std::vector<uint64_t> words;
};

class CompressorTest : public ::testing::TestWithParam<int> {
 protected:
  CompressorTest() {
    FillPage(5, from_.data());
    from_.header().set_live(0, ~uint64_t{0});
    from_.header().set_live(1, kHalf);
  }
  T1Head Head(size_t head) {
    const std::byte* rows =
        from_.data() + PageLayout::T1(kGeometry).header_bytes;
    return {rows + kGeometry.KeyOffset(kPageTokens, head, 0),
            rows + kGeometry.ValueOffset(kPageTokens, head, 0)};
  }
  absl::Status Compress(std::vector<uint64_t> kept) {
    return CompressPage(kGeometry, GetParam(), kept, from_.data(), to_.data());
  }

  static constexpr uint64_t kHalf = 0x00000000ffffffff;
  Page from_{0};
  Page to_{GetParam()};
};

TEST_P(CompressorTest, EachHeadIsEncodedWithItsKeptAndItsWidestRows) {
  const int bits = GetParam();

  ASSERT_TRUE(Compress({0xf, 1ull << 40 | 1}).ok());

  EXPECT_TRUE(CheckPageHeader(to_.data(), kGeometry, Identity(bits)).ok());
  EXPECT_TRUE(CheckT2Heads(to_.data(), kGeometry, bits).ok());
  EXPECT_EQ(to_.header().live(0), ~uint64_t{0});
  EXPECT_EQ(to_.header().live(1), kHalf);
  const size_t part_bytes = T2HeadLayout::Of(kGeometry, bits).head_bytes;
  const uint64_t live[] = {~uint64_t{0}, kHalf};
  const uint64_t kept[] = {0xf, 1};  // slot 40 is dead in head 1
  for (size_t head = 0; head < 2; ++head) {
    std::vector<std::byte> part(part_bytes);
    ASSERT_TRUE(EncodeT2Head(kGeometry, bits, Head(head), live[head],
                             ChooseT2Exceptions(kGeometry, Head(head),
                                                live[head], kept[head]),
                             part)
                    .ok());
    EXPECT_EQ(
        std::memcmp(to_.data() + PageLayout::T2(kGeometry, bits).header_bytes +
                        head * part_bytes,
                    part.data(), part_bytes),
        0);
  }
}

TEST_P(CompressorTest, ADamagedLiveRowIsFoundAndADeadOneIsNotRead) {
  auto* dead =
      const_cast<std::byte*>(Head(1).keys) + 63 * kGeometry.VectorBytes();
  *dead ^= std::byte{1};
  EXPECT_TRUE(Compress({0, 0}).ok());
  *const_cast<std::byte*>(Head(1).values) ^= std::byte{1};

  const absl::Status status = Compress({0, 0});

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("head 1, slot 0"));
}

INSTANTIATE_TEST_SUITE_P(Bits, CompressorTest, ::testing::Values(8, 4));

}  // namespace
}  // namespace farkv

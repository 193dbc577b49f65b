#include <cstring>
#include <tuple>

#include "common/base/crc32c.h"
#include "common/page/page_format.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_bodies.h"
#include "tests/golden/golden_file.h"

namespace farkv {
namespace {

using testing::FirstDifference;
using testing::GoldenBytes;
using testing::Pattern;

PageIdentity Identity(Tier tier, int t2_bits) {
  return {testing::GoldenSession(),       7,    41,
          Generation{0x0102030405060708}, tier, t2_bits};
}

KvGeometry Geometry(int32_t heads, int32_t dim, DType dtype) {
  return {28, heads, dim, dtype};
}

// Generation first, then the fields, as a node writes a page.
void FormatPage(std::byte* page, const KvGeometry& geometry,
                const PageIdentity& identity) {
  PageHeader header(page, geometry);
  header.set_generation(identity.generation);
  header.Format(identity, geometry);
}

std::vector<std::byte> HeaderOf(const std::vector<std::byte>& page,
                                size_t header_bytes) {
  return {page.begin(),
          page.begin() + static_cast<std::ptrdiff_t>(header_bytes)};
}

TEST(PageHeaderGoldenTest, AT1HeaderIsTheseBytes) {
  const KvGeometry geometry = Geometry(2, 16, DType::kBf16);
  const PageLayout layout = PageLayout::T1(geometry);
  std::vector<std::byte> page(layout.stride, std::byte{0xee});
  const std::vector<std::byte> payload = Pattern(layout.payload_bytes);
  std::memcpy(page.data() + layout.header_bytes, payload.data(),
              payload.size());
  FormatPage(page.data(), geometry, Identity(Tier::kT1, 0));
  PageHeader header(page.data(), geometry);
  header.set_live(0, ~uint64_t{0});
  header.set_live(1, 5);
  for (size_t head = 0; head < 2; ++head) {
    for (size_t slot = 0; slot < kPageTokens; ++slot) {
      const auto vector = [&](size_t offset) {
        return std::span(payload).subspan(offset, geometry.VectorBytes());
      };
      header.set_row_crc(
          static_cast<int>(head), static_cast<int>(slot),
          RowCrc(vector(geometry.KeyOffset(kPageTokens, head, slot)),
                 vector(geometry.ValueOffset(kPageTokens, head, slot))));
    }
  }
  header.Seal();

  EXPECT_EQ(FirstDifference(HeaderOf(page, layout.header_bytes),
                            GoldenBytes("page_t1")),
            "");
  const std::vector<uint64_t> all(2, ~uint64_t{0});
  EXPECT_TRUE(CheckPageRows(page.data(), geometry, all).ok());
}

TEST(PageHeaderGoldenTest, AT2HeaderIsTheseBytes) {
  const KvGeometry geometry = Geometry(1, 32, DType::kF32);
  const PageLayout layout = PageLayout::T2(geometry, 8);
  std::vector<std::byte> page(layout.stride, std::byte{0xee});
  const std::vector<std::byte> payload = Pattern(layout.payload_bytes);
  std::memcpy(page.data() + layout.header_bytes, payload.data(),
              payload.size());
  FormatPage(page.data(), geometry, Identity(Tier::kT2, 8));
  PageHeader header(page.data(), geometry);
  header.set_live(0, 0x8000000000000001);
  header.set_row_crc(0, 0, Crc32c(payload));
  header.Seal();

  EXPECT_EQ(FirstDifference(HeaderOf(page, layout.header_bytes),
                            GoldenBytes("page_t2")),
            "");
  EXPECT_TRUE(CheckT2Heads(page.data(), geometry, 8).ok());
}

TEST(PageHeaderGoldenTest, TheseBytesSayWhatWasWritten) {
  const std::vector<std::byte> t1 = GoldenBytes("page_t1");
  const std::vector<std::byte> t2 = GoldenBytes("page_t2");

  const absl::Status first = CheckPageHeader(
      t1.data(), Geometry(2, 16, DType::kBf16), Identity(Tier::kT1, 0));
  const absl::Status second = CheckPageHeader(
      t2.data(), Geometry(1, 32, DType::kF32), Identity(Tier::kT2, 8));

  EXPECT_TRUE(first.ok()) << first;
  EXPECT_TRUE(second.ok()) << second;
}

struct LayoutCase {
  KvGeometry geometry;
  int bits;  // 0: T1
  size_t header_bytes, payload_bytes, stride;
};

TEST(PageLayoutGoldenTest, PagesHaveTheseSizes) {
  const KvGeometry wide = Geometry(8, 128, DType::kBf16);
  const KvGeometry odd = Geometry(3, 80, DType::kF32);
  const LayoutCase cases[] = {
      {wide, 0, 2176, 262144, 266240}, {odd, 0, 896, 122880, 126976},
      {wide, 8, 2176, 176640, 180224}, {wide, 4, 2176, 111104, 114688},
      {odd, 8, 896, 49728, 53248},     {odd, 4, 896, 34368, 36864},
  };
  for (const LayoutCase& c : cases) {
    SCOPED_TRACE(c.geometry.ToString() + ", bits " + std::to_string(c.bits));
    const PageLayout layout = c.bits == 0 ? PageLayout::T1(c.geometry)
                                          : PageLayout::T2(c.geometry, c.bits);
    EXPECT_EQ(layout.header_bytes, c.header_bytes);
    EXPECT_EQ(layout.payload_bytes, c.payload_bytes);
    EXPECT_EQ(layout.stride, c.stride);
  }
}

using Offsets = std::array<size_t, 9>;

Offsets T2Offsets(const KvGeometry& geometry, int bits) {
  const T2HeadLayout l = T2HeadLayout::Of(geometry, bits);
  return {l.key_scale,       l.key_minimum,    l.value_scale,
          l.value_minimum,   l.key_codes,      l.value_codes,
          l.exception_slots, l.exception_rows, l.head_bytes};
}

TEST(PageLayoutGoldenTest, AT2HeadHasItsPartsAtTheseOffsets) {
  const KvGeometry wide = Geometry(8, 128, DType::kBf16);
  const KvGeometry odd = Geometry(3, 80, DType::kF32);

  EXPECT_EQ(T2Offsets(wide, 8),
            (Offsets{0, 256, 512, 1024, 1536, 9728, 17920, 17984, 22080}));
  EXPECT_EQ(T2Offsets(wide, 4),
            (Offsets{0, 256, 512, 1024, 1536, 5632, 9728, 9792, 13888}));
  EXPECT_EQ(T2Offsets(odd, 8),
            (Offsets{0, 192, 384, 768, 1152, 6272, 11392, 11456, 16576}));
  EXPECT_EQ(T2Offsets(odd, 4),
            (Offsets{0, 192, 384, 768, 1152, 3712, 6272, 6336, 11456}));
}

}  // namespace
}  // namespace farkv

#include <cstring>

#include "common/base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/page/page_builder.h"

namespace farkv {
namespace {

using testing::BuildT1;
using testing::BuiltPage;
using ::testing::HasSubstr;
using testing::SomeIdentity;

constexpr KvGeometry kRowsGeometry{4, 3, 16, DType::kF32};
constexpr uint64_t kAll = ~uint64_t{0};

std::byte* RowAt(BuiltPage& page, size_t offset) {
  return page.data() + PageLayout::T1(kRowsGeometry).header_bytes + offset;
}

TEST(PageRowsTest, IntactRowsPass) {
  BuiltPage page = BuildT1(kRowsGeometry, 1);
  const uint64_t rows[] = {kAll, kAll, kAll};

  EXPECT_TRUE(CheckPageRows(page.data(), kRowsGeometry, rows).ok());
}

TEST(PageRowsTest, AFlippedBitInKeyOrValueIsFoundAndNamed) {
  BuiltPage page = BuildT1(kRowsGeometry, 2);
  const uint64_t rows[] = {kAll, kAll, kAll};
  const size_t offsets[] = {kRowsGeometry.KeyOffset(kPageTokens, 2, 9) + 5,
                            kRowsGeometry.ValueOffset(kPageTokens, 2, 9) +
                                kRowsGeometry.VectorBytes() - 1};
  for (size_t offset : offsets) {
    *RowAt(page, offset) ^= std::byte{0x10};
    const absl::Status status = CheckPageRows(page.data(), kRowsGeometry, rows);
    *RowAt(page, offset) ^= std::byte{0x10};

    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("session 000000ab, layer 5, page 17, head 2, slot 9: "
                          "row CRC is 0x"));
  }
}

TEST(PageRowsTest, OnlyTheNamedRowsAreRead) {
  BuiltPage page = BuildT1(kRowsGeometry, 3);
  *RowAt(page, kRowsGeometry.KeyOffset(kPageTokens, 1, 30)) ^= std::byte{1};
  const uint64_t without[] = {kAll, kAll ^ (uint64_t{1} << 30), kAll};
  const uint64_t with[] = {0, uint64_t{1} << 30, 0};

  EXPECT_TRUE(CheckPageRows(page.data(), kRowsGeometry, without).ok());
  EXPECT_FALSE(CheckPageRows(page.data(), kRowsGeometry, with).ok());
}

TEST(PageRowsTest, SwappedRowsAreFound) {
  BuiltPage page = BuildT1(kRowsGeometry, 4);
  const size_t bytes = kRowsGeometry.VectorBytes();
  std::swap_ranges(
      RowAt(page, kRowsGeometry.KeyOffset(kPageTokens, 0, 1)),
      RowAt(page, kRowsGeometry.KeyOffset(kPageTokens, 0, 1)) + bytes,
      RowAt(page, kRowsGeometry.KeyOffset(kPageTokens, 0, 2)));
  const uint64_t rows[] = {kAll, 0, 0};

  EXPECT_FALSE(CheckPageRows(page.data(), kRowsGeometry, rows).ok());
}

TEST(PageRowsTest, TheWrongNumberOfBitmapsIsNamed) {
  BuiltPage page = BuildT1(kRowsGeometry, 5);
  const uint64_t rows[] = {kAll, kAll};

  const absl::Status status = CheckPageRows(page.data(), kRowsGeometry, rows);

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("2 bitmaps given for 3 KV heads"));
}

TEST(PageRowsTest, ARowsCrcCoversKeyThenValue) {
  const std::vector<std::byte> key(8, std::byte{1});
  const std::vector<std::byte> value(8, std::byte{2});
  std::vector<std::byte> both = key;
  both.insert(both.end(), value.begin(), value.end());

  EXPECT_EQ(RowCrc(key, value), Crc32c(both));
  EXPECT_NE(RowCrc(key, value), RowCrc(value, key));
}

TEST(T2HeadsTest, EachHeadsPartIsGuarded) {
  const PageLayout layout = PageLayout::T2(kRowsGeometry, 4);
  const size_t head_bytes = T2HeadLayout::Of(kRowsGeometry, 4).head_bytes;
  BuiltPage page(kRowsGeometry, SomeIdentity(Tier::kT2, 4), layout.stride);
  PageHeader header = page.header();
  header.set_generation(page.identity.generation);
  header.Format(page.identity, kRowsGeometry);
  std::byte* payload = page.data() + layout.header_bytes;
  for (int head = 0; head < 3; ++head) {
    std::byte* part = payload + static_cast<size_t>(head) * head_bytes;
    std::memset(part, head + 1, head_bytes);
    header.set_row_crc(head, 0, Crc32c({part, head_bytes}));
  }
  header.Seal();

  EXPECT_TRUE(page.Check().ok()) << page.Check();
  EXPECT_TRUE(CheckT2Heads(page.data(), kRowsGeometry, 4).ok());
  payload[2 * head_bytes - 1] ^= std::byte{1};
  EXPECT_THAT(
      std::string(CheckT2Heads(page.data(), kRowsGeometry, 4).message()),
      HasSubstr("page 17, head 1: CRC of the T2 part is 0x"));
}

}  // namespace
}  // namespace farkv

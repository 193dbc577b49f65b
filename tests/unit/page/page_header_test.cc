#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/page/page_builder.h"

namespace farkv {
namespace {

using testing::BuildT1;
using testing::BuiltPage;
using ::testing::HasSubstr;
using testing::SomeIdentity;

constexpr KvGeometry kGeometry{4, 2, 32, DType::kBf16};

TEST(PageHeaderTest, AFormattedPageIsWhatItSays) {
  BuiltPage page = BuildT1(kGeometry, 1);

  EXPECT_TRUE(page.Check().ok()) << page.Check();
  EXPECT_EQ(page.header().generation(), Generation{3});
  EXPECT_EQ(LoadPageGeneration(page.data()), Generation{3});
  EXPECT_EQ(page.header().live(1), ~uint64_t{0});
}

TEST(PageHeaderTest, FormatClearsWhatAnEarlierPageLeft) {
  BuiltPage page = BuildT1(kGeometry, 1);
  PageHeader header = page.header();
  const size_t header_bytes = PageLayout::T1(kGeometry).header_bytes;
  const size_t used = 64 + 8 * 2 + 256 * 2;
  std::memset(page.data() + used, 0xff, header_bytes - used);

  header.Format(SomeIdentity(), kGeometry);

  EXPECT_EQ(header.live(0), 0u);
  EXPECT_EQ(header.row_crc(1, 63), 0u);
  EXPECT_EQ(page.data()[header_bytes - 1], std::byte{0});
  EXPECT_EQ(header.generation(), Generation{3});  // the caller's to change
}

// Every bit of the header but those of generation, bitmaps and the padding is
// guarded: by the magic, the CRC or, for the CRC itself, the comparison.
TEST(PageHeaderTest, EveryGuardedBitIsNoticed) {
  BuiltPage page = BuildT1(kGeometry, 2);
  const auto guarded = [](size_t i) {
    if (i >= 32 && i < 40) return false;          // generation
    if (i >= 60 && i < 64 + 8 * 2) return false;  // zero, bitmaps
    return i < 64 + 8 * 2 + 256 * 2;
  };
  const size_t header_bytes = PageLayout::T1(kGeometry).header_bytes;
  for (size_t i = 0; i < header_bytes; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::byte flip{static_cast<unsigned char>(1 << bit)};
      page.data()[i] ^= flip;
      const absl::Status status = page.Check();
      page.data()[i] ^= flip;
      if (guarded(i)) {
        ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss)
            << "byte " << i << " bit " << bit << ": " << status;
      } else if (i < 32 || i >= 40) {
        ASSERT_TRUE(status.ok()) << "byte " << i << ": " << status;
      }
    }
  }
}

TEST(PageHeaderTest, AnotherGenerationIsRefusedAlthoughTheCrcHolds) {
  BuiltPage page = BuildT1(kGeometry, 3);
  page.header().set_generation(Generation{4});

  const absl::Status status = page.Check();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("generation is 4, expected 3"));
}

TEST(PageHeaderTest, LiveBitsMayChangeWithoutSealing) {
  BuiltPage page = BuildT1(kGeometry, 4);

  page.header().set_live(0, 0x0f);

  EXPECT_TRUE(page.Check().ok());
}

struct Mismatch {
  const char* field;
  PageIdentity identity;
  KvGeometry geometry;
};

TEST(PageHeaderTest, TheFirstFieldThatDiffersIsNamedWithBothValues) {
  BuiltPage page = BuildT1(kGeometry, 5);
  std::vector<Mismatch> cases(8, {"", SomeIdentity(), kGeometry});
  cases[0].field = "session is 000000ab";
  cases[0].identity.session.bytes[0] = 1;
  cases[1].field = "layer is 5, expected 6";
  cases[1].identity.layer = 6;
  cases[2].field = "page index is 17, expected 18";
  cases[2].identity.page_index = 18;
  cases[3].field = "tier is 1, expected 2";
  cases[3].identity.tier = Tier::kT2;
  cases[3].identity.t2_bits = 8;
  cases[4].field = "dtype is 1, expected 2";
  cases[4].geometry.dtype = DType::kF32;
  cases[5].field = "head_dim is 32, expected 64";
  cases[5].geometry.head_dim = 64;
  cases[6].field = "T2 bits is 0, expected 4";
  cases[6].identity.t2_bits = 4;
  cases[7].field = "generation is 3, expected 9";
  cases[7].identity.generation = Generation{9};
  for (const Mismatch& c : cases) {
    const absl::Status status =
        CheckPageHeader(page.data(), c.geometry, c.identity);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.field));
  }
}

TEST(PageHeaderTest, FewerHeadsThanExpectedAreNamedMoreAreDataLoss) {
  BuiltPage page = BuildT1(kGeometry, 6);
  KvGeometry three = kGeometry;
  three.num_kv_heads = 3;
  KvGeometry one = kGeometry;
  one.num_kv_heads = 1;

  EXPECT_THAT(
      std::string(CheckPageHeader(page.data(), three, page.identity).message()),
      HasSubstr("KV heads is 2, expected 3"));
  EXPECT_EQ(CheckPageHeader(page.data(), one, page.identity).code(),
            absl::StatusCode::kDataLoss);
}

TEST(PageHeaderTest, AFutureVersionIsRefused) {
  BuiltPage page = BuildT1(kGeometry, 7);
  page.data()[4] = std::byte{2};
  page.header().Seal();

  EXPECT_THAT(std::string(page.Check().message()),
              HasSubstr("format version is 2, expected 1"));
}

TEST(PageHeaderTest, ZeroedMemoryIsNoPage) {
  BuiltPage page(kGeometry, SomeIdentity(), PageLayout::T1(kGeometry).stride);

  EXPECT_EQ(page.Check().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace farkv

// What the encoder writes for one head of a T2 page, and what a reader takes
// from these bytes. A node and a worker of different releases meet over them:
// other bytes, or other rows from the same bytes, need a new format version.
#include <bit>
#include <string>
#include <vector>

#include "common/base/bf16.h"
#include "common/base/crc32c.h"
#include "common/base/endian.h"
#include "common/page/t2_codec.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"

namespace farkv {
namespace {

using testing::FirstDifference;
using testing::GoldenBytes;

constexpr uint64_t kDead = 1ull << 7 | 1ull << 40 | 1ull << 63;
constexpr uint64_t kSinks = 0b10001011;  // slot 7 is dead
constexpr uint64_t kExceptions = 0b1011 | 1ull << 8 | 1ull << 29;

struct GoldenHead {
  const char* file;
  int bits;
  KvGeometry geometry;
  float divisor;         // of the numbers that generate_t2.py makes
  uint32_t decoded_crc;  // of all live rows, keys first
};

constexpr GoldenHead kHeads[] = {
    {"t2_head_8", 8, {1, 1, 48, DType::kBf16}, 64.0f, 0x73d3d7a6},
    {"t2_head_4", 4, {1, 1, 16, DType::kF32}, 96.0f, 0xaeb58ef8}};

// Element `channel` of a key (kind 0) or a value (kind 1).
float Element(const GoldenHead& head, int kind, int slot, int channel) {
  if (kind == 1 && slot == 5) return 32.0f / head.divisor;
  const int n =
      (slot * 37 + channel * 131 + kind * 59 + (channel >> 3) * 17) % 253 - 126;
  return static_cast<float>(n << (slot % 3)) / head.divisor;
}

// The 64 keys or values. Dead rows hold NaN.
std::vector<std::byte> Vectors(const GoldenHead& head, int kind) {
  std::vector<std::byte> bytes(kPageTokens * head.geometry.VectorBytes(),
                               std::byte{0xff});
  for (int slot = 0; slot < kPageTokens; ++slot) {
    if ((kDead >> slot & 1) != 0) continue;
    for (int c = 0; c < head.geometry.head_dim; ++c) {
      const auto i = static_cast<size_t>(slot * head.geometry.head_dim + c);
      const float value = Element(head, kind, slot, c);
      if (head.geometry.dtype == DType::kBf16) {
        StoreLe(&bytes[i * 2], FloatToBf16(value));
      } else {
        StoreLe(&bytes[i * 4], std::bit_cast<uint32_t>(value));
      }
    }
  }
  return bytes;
}

TEST(T2GoldenTest, TheEncoderWritesTheseBytes) {
  for (const GoldenHead& golden : kHeads) {
    SCOPED_TRACE(golden.file);
    const std::vector<std::byte> keys = Vectors(golden, 0);
    const std::vector<std::byte> values = Vectors(golden, 1);
    const T1Head head{keys.data(), values.data()};
    std::vector<std::byte> part(
        T2HeadLayout::Of(golden.geometry, golden.bits).head_bytes,
        std::byte{0xee});

    const uint64_t exceptions =
        ChooseT2Exceptions(golden.geometry, head, ~kDead, kSinks);
    const absl::Status status = EncodeT2Head(golden.geometry, golden.bits, head,
                                             ~kDead, exceptions, part);

    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(exceptions, kExceptions);
    EXPECT_EQ(FirstDifference(part, GoldenBytes(golden.file)), "");
  }
}

TEST(T2GoldenTest, TheseBytesGiveTheseRows) {
  for (const GoldenHead& golden : kHeads) {
    SCOPED_TRACE(golden.file);
    const size_t bytes = 61 * golden.geometry.VectorBytes();
    std::vector<std::byte> rows(2 * bytes);

    const absl::Status status =
        DecodeT2Head(golden.geometry, golden.bits, GoldenBytes(golden.file),
                     ~kDead, rows.data(), rows.data() + bytes);

    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Crc32c(rows), golden.decoded_crc);
  }
}

}  // namespace
}  // namespace farkv

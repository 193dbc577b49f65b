#include <random>

#include "common/base/endian.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/page/allocation_meter.h"
#include "tests/unit/page/body_decoders.h"

namespace farkv {
namespace {

using testing::AllocatedBytes;
using testing::BodyDecoder;
using testing::GoldenBytes;
using testing::kBodyDecoders;
using ::testing::StartsWith;

class BodyDecoderTest : public ::testing::TestWithParam<BodyDecoder> {};

INSTANTIATE_TEST_SUITE_P(Bodies, BodyDecoderTest,
                         ::testing::ValuesIn(kBodyDecoders),
                         [](const auto& decoder) {
                           return std::string(decoder.param.message);
                         });

TEST_P(BodyDecoderTest, EveryTruncationIsRefusedByName) {
  const std::vector<std::byte> body = GoldenBytes(GetParam().golden);
  ASSERT_TRUE(GetParam().decode(body).ok());

  for (size_t size = 0; size < body.size(); ++size) {
    // A copy of its own, so that AddressSanitizer sees any read behind it.
    const std::vector<std::byte> cut(
        body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size));
    const absl::Status status = GetParam().decode(cut);
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << size << " of " << body.size() << " bytes";
    ASSERT_THAT(std::string(status.message()), StartsWith(GetParam().message));
  }
}

TEST_P(BodyDecoderTest, AByteTooManyIsRefused) {
  std::vector<std::byte> body = GoldenBytes(GetParam().golden);
  body.push_back(std::byte{0});

  EXPECT_EQ(GetParam().decode(body).code(), absl::StatusCode::kInvalidArgument);
}

// Any word of the body may lie. Whatever a count claims, a decoder allocates
// in proportion to the bytes that are there, never to the claim.
TEST_P(BodyDecoderTest, HostileWordsCostNoMemory) {
  const std::vector<std::byte> golden = GoldenBytes(GetParam().golden);
  const uint32_t lies[] = {0xffffffffu, 0x80000000u, 0x7fffffffu,
                           0x10000u,    4096u,       4097u,
                           1024u,       256u,        0u};
  for (size_t offset = 0; offset + 4 <= golden.size(); offset += 4) {
    for (uint32_t lie : lies) {
      std::vector<std::byte> body = golden;
      StoreLe(body.data() + offset, lie);
      const size_t before = AllocatedBytes();
      const absl::Status status = GetParam().decode(body);
      const size_t used = AllocatedBytes() - before;
      ASSERT_LE(used, 16 * golden.size() + 4096)
          << "offset " << offset << " says " << lie << ": " << status;
    }
  }
}

TEST_P(BodyDecoderTest, RandomBytesNeverEscapeTheirBody) {
  std::mt19937_64 random(7);
  const std::vector<std::byte> golden = GoldenBytes(GetParam().golden);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> body = golden;
    const size_t changes = 1 + random() % 8;
    for (size_t i = 0; i < changes; ++i) {
      body[random() % body.size()] = static_cast<std::byte>(random());
    }
    body.resize(body.size() - random() % 3);
    const absl::Status status = GetParam().decode(body);
    if (!status.ok()) {
      ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    }
  }
}

}  // namespace
}  // namespace farkv

#include "common/page/byte_io.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

TEST(ByteReaderTest, ReadingPastTheEndGivesZerosAndFailsInTheEnd) {
  const std::vector<std::byte> bytes(6, std::byte{0xff});
  ByteReader reader(bytes, "Message");

  EXPECT_EQ(reader.Read<uint32_t>(), 0xffffffffu);
  EXPECT_EQ(reader.Read<uint32_t>(), 0u);
  EXPECT_TRUE(reader.ReadBytes(3).empty());

  EXPECT_THAT(std::string(reader.Finish().message()),
              HasSubstr("Message: read past its 6 bytes"));
}

TEST(ByteReaderTest, RequireNamesThePartAndTheSizes) {
  const std::vector<std::byte> bytes(20);
  ByteReader reader(bytes, "Message");
  reader.Read<uint64_t>();

  EXPECT_TRUE(reader.Require("items", 3, 4).ok());
  EXPECT_EQ(reader.Require("items", 4, 4).message(),
            "Message: items needs 4 x 4 bytes at offset 8, the body has 20");
}

TEST(ByteReaderTest, RequireDoesNotOverflow) {
  const std::vector<std::byte> bytes(20);
  ByteReader reader(bytes, "Message");

  EXPECT_FALSE(reader
                   .Require("items", std::numeric_limits<uint32_t>::max() / 2,
                            std::numeric_limits<uint32_t>::max())
                   .ok());
}

TEST(ByteReaderTest, PaddingMustBeZeroAndBytesMustBeUsedUp) {
  ByteWriter writer;
  writer.Put(uint8_t{1});
  writer.Align();
  writer.Put(uint8_t{2});
  std::vector<std::byte> bytes = writer.Take();
  ASSERT_EQ(bytes.size(), 65u);

  ByteReader good(bytes, "Message");
  good.Read<uint8_t>();
  EXPECT_TRUE(good.Align("rows").ok());
  EXPECT_THAT(std::string(good.Finish().message()),
              HasSubstr("1 bytes left over at offset 64 of 65"));

  bytes[10] = std::byte{1};
  ByteReader bad(bytes, "Message");
  bad.Read<uint8_t>();
  EXPECT_THAT(std::string(bad.Align("rows").message()),
              HasSubstr("padding before rows at offset 1 is not zero"));
}

}  // namespace
}  // namespace farkv

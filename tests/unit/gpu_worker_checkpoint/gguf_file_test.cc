#include "gpu_worker/checkpoint/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/testing/gguf_writer.h"

namespace farkv {
namespace {

using ::farkv::testing::GgufWriter;
using ::farkv::testing::RawBytes;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint32_t kQ5_0 = 6;
constexpr uint32_t kF16 = 1;

// Owns the bytes that the file views; exact, so that AddressSanitizer sees
// their ends.
struct ParsedFile {
  std::vector<char> bytes;
  absl::StatusOr<std::unique_ptr<GgufFile>> file;

  explicit ParsedFile(const std::string& text)
      : bytes(text.begin(), text.end()),
        file(GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf")) {}
  const GgufFile& operator*() const { return **file; }
};

void ExpectRefused(const std::string& bytes,
                   const ::testing::Matcher<std::string>& message) {
  const ParsedFile parsed(bytes);
  EXPECT_EQ(parsed.file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.file.status().message()),
              AllOf(HasSubstr("x.gguf"), message));
}

GgufWriter SmallFile() {
  GgufWriter writer;
  writer.Add("general.architecture", "llama");
  writer.Add("llama.block_count", uint32_t{2});
  writer.AddArray<std::string>("tokens", {"a", "", "long enough for the heap"});
  writer.AddTensor("a", {2, 3}, kF32, std::string(24, 'a'));
  writer.AddTensor("b", {1, 64}, kQ4_0, std::string(36, 'b'));
  return writer;
}

TEST(GgufFileTest, ValuesOfEveryTypeAreReadByTheirGetter) {
  GgufWriter writer;
  writer.Add("u8", uint8_t{200});
  writer.Add("i8", int8_t{-3});
  writer.Add("u16", uint16_t{60000});
  writer.Add("i16", int16_t{-30000});
  writer.Add("u32", uint32_t{4000000000});
  writer.Add("i32", int32_t{-2000000000});
  writer.Add("u64", uint64_t{1} << 62);
  writer.Add("i64", std::numeric_limits<int64_t>::min());
  writer.Add("f32", 0.5f);
  writer.Add("f64", 0.1);
  writer.Add("yes", true);
  writer.Add("text", "abc");
  const ParsedFile parsed(writer.Bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();

  EXPECT_EQ(*(*parsed).Integer("u8"), 200);
  EXPECT_EQ(*(*parsed).Integer("i8"), -3);
  EXPECT_EQ(*(*parsed).Integer("u16"), 60000);
  EXPECT_EQ(*(*parsed).Integer("i16"), -30000);
  EXPECT_EQ(*(*parsed).Integer("u32"), 4000000000);
  EXPECT_EQ(*(*parsed).Integer("i32"), -2000000000);
  EXPECT_EQ(*(*parsed).Integer("u64"), int64_t{1} << 62);
  EXPECT_EQ(*(*parsed).Integer("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*(*parsed).Real("f32"), 0.5);
  EXPECT_EQ(*(*parsed).Real("f64"), 0.1);
  EXPECT_TRUE(*(*parsed).Bool("yes"));
  EXPECT_EQ(*(*parsed).String("text"), "abc");
}

TEST(GgufFileTest, ArraysAreReadByTheirGetter) {
  GgufWriter writer;
  writer.AddArray<std::string>("tokens", {"a", "", "bc"});
  writer.AddArray<int32_t>("kinds", {1, -1});
  writer.AddArray<float>("scores", {0.5f, -2.0f});
  writer.AddRaw("bools", 9,
                RawBytes(uint32_t{7}) + RawBytes(uint64_t{2}) +
                    std::string("\x00\x01", 2));
  writer.AddArray<uint16_t>("none", {});
  const ParsedFile parsed(writer.Bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();

  EXPECT_THAT(*(*parsed).Strings("tokens"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(*(*parsed).Integers("kinds"), ElementsAre(1, -1));
  EXPECT_THAT(*(*parsed).Reals("scores"), ElementsAre(0.5, -2.0));
  EXPECT_THAT(*(*parsed).Bools("bools"), ElementsAre(false, true));
  EXPECT_THAT(*(*parsed).Integers("none"), ElementsAre());
}

TEST(GgufFileTest, AGetterRefusesAnotherTypeByName) {
  GgufWriter writer;
  writer.Add("text", "abc");
  writer.Add("huge", std::numeric_limits<uint64_t>::max());
  writer.AddArray<float>("scores", {0.5f});
  const ParsedFile parsed(writer.Bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();

  const auto refused = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refused((*parsed).Integer("text").status()),
              AllOf(HasSubstr("text"), HasSubstr("is string")));
  EXPECT_THAT(refused((*parsed).Integer("huge").status()), HasSubstr("2^63"));
  EXPECT_THAT(refused((*parsed).Real("scores").status()),
              HasSubstr("array of 1 float32"));
  EXPECT_THAT(refused((*parsed).Strings("text").status()), HasSubstr("array"));
  EXPECT_THAT(refused((*parsed).Strings("scores").status()),
              HasSubstr("array of string"));
  EXPECT_THAT(refused((*parsed).Integers("scores").status()),
              HasSubstr("integers"));
  EXPECT_THAT(refused((*parsed).Bools("scores").status()), HasSubstr("bool"));
  EXPECT_EQ((*parsed).String("absent").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(GgufFileTest, TensorsAreViewsOfTheFileWithRowMajorShapes) {
  const ParsedFile parsed(SmallFile().Bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();

  const GgufTensor& a = (*parsed).tensors().at("a");
  const GgufTensor& b = (*parsed).tensors().at("b");
  EXPECT_THAT(a.shape, ElementsAre(2, 3));
  EXPECT_EQ(a.bytes.size(), 24u);
  EXPECT_EQ(a.bytes[23], std::byte{'a'});
  EXPECT_EQ(b.bytes.size(), 36u);
  EXPECT_EQ(b.bytes[0], std::byte{'b'});
  EXPECT_EQ(static_cast<const void*>(b.bytes.data() + 36),
            parsed.bytes.data() + parsed.bytes.size());
}

TEST(GgufFileTest, TheAlignmentKeyMovesTheData) {
  GgufWriter writer;
  writer.alignment = 256;
  writer.Add("general.alignment", uint32_t{256});
  writer.AddTensor("a", {1}, kF32, "aaaa");
  writer.AddTensor("b", {1}, kF32, "bbbb");
  const ParsedFile parsed(writer.Bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();

  EXPECT_EQ((*parsed).tensors().at("a").bytes[0], std::byte{'a'});
  EXPECT_EQ((*parsed).tensors().at("b").bytes[0], std::byte{'b'});
}

TEST(GgufFileTest, EveryTruncationIsRefused) {
  const std::string bytes = SmallFile().Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    ExpectRefused(
        bytes.substr(0, length),
        ContainsRegex(
            "[0-9]+ (are left|data bytes)|(a file of|lie in|it has) [0-9]+"));
  }
  EXPECT_TRUE(ParsedFile(bytes).file.ok());
}

TEST(GgufFileTest, OtherFilesVersionsAndByteOrdersAreToldApart) {
  GgufWriter writer = SmallFile();
  writer.magic = "GGML";
  ExpectRefused(writer.Bytes(), HasSubstr("not a GGUF"));

  writer = SmallFile();
  for (const uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    writer.version = version;
    const ParsedFile parsed(writer.Bytes());
    EXPECT_EQ(parsed.file.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(parsed.file.status().message()),
                HasSubstr(std::to_string(version)));
  }
  writer.version = 3u << 24;
  EXPECT_THAT(std::string(ParsedFile(writer.Bytes()).file.status().message()),
              HasSubstr("big endian"));
  writer.version = 2;
  EXPECT_TRUE(ParsedFile(writer.Bytes()).file.ok());
}

TEST(GgufFileTest, HugeCountsAndLengthsAreRefusedBeforeAnythingIsAllocated) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  GgufWriter writer = SmallFile();
  writer.num_values = kHuge;
  ExpectRefused(writer.Bytes(), HasSubstr("metadata keys"));
  writer = SmallFile();
  writer.num_tensors = kHuge;
  ExpectRefused(writer.Bytes(), HasSubstr("tensors cannot lie"));
  for (const uint32_t element : {0u, 6u, 8u, 12u}) {
    for (const uint64_t count : {kHuge, kHuge / 4, kHuge / 8 + 1}) {
      writer = SmallFile();
      writer.AddRaw("many", 9, RawBytes(element) + RawBytes(count));
      ExpectRefused(writer.Bytes(), AllOf(HasSubstr("key many"),
                                          HasSubstr(std::to_string(count))));
    }
  }
  writer = SmallFile();
  writer.AddRaw("long", 8, RawBytes(kHuge));
  ExpectRefused(writer.Bytes(), HasSubstr("key long"));
}

TEST(GgufFileTest, WrongValueTypesAreRefused) {
  GgufWriter writer = SmallFile();
  writer.AddRaw("odd", 13, RawBytes(uint64_t{0}));
  ExpectRefused(writer.Bytes(), HasSubstr("value type 13"));
  writer = SmallFile();
  writer.AddRaw("odd", 9, RawBytes(uint32_t{77}) + RawBytes(uint64_t{0}));
  ExpectRefused(writer.Bytes(), HasSubstr("value type 77"));
  writer = SmallFile();
  writer.AddRaw("odd", 9, RawBytes(uint32_t{9}) + RawBytes(uint64_t{0}));
  ExpectRefused(writer.Bytes(), HasSubstr("arrays of arrays"));
  writer = SmallFile();
  writer.Add("llama.block_count", uint32_t{2});
  ExpectRefused(writer.Bytes(), HasSubstr("llama.block_count is given twice"));
}

TEST(GgufFileTest, BadAlignmentsAreRefused) {
  for (const uint32_t alignment : {0u, 3u, 48u, 0x80000000u}) {
    GgufWriter writer = SmallFile();
    writer.Add("general.alignment", alignment);
    ExpectRefused(writer.Bytes(), HasSubstr("general.alignment"));
  }
  GgufWriter writer = SmallFile();
  writer.Add("general.alignment", "32");
  ExpectRefused(writer.Bytes(), HasSubstr("is string"));
}

TEST(GgufFileTest, BadShapesAreRefusedByName) {
  const auto refuse = [](const std::vector<int64_t>& shape, uint32_t type,
                         const char* message) {
    GgufWriter writer = SmallFile();
    writer.AddTensor("odd", shape, type, std::string(64, 'x'));
    ExpectRefused(writer.Bytes(),
                  AllOf(HasSubstr("tensor odd"), HasSubstr(message)));
  };
  refuse({}, kF32, "0 dimensions");
  refuse({1, 1, 1, 1, 1}, kF32, "5 dimensions");
  refuse({0, 4}, kF32, "extent 1 is 0");
  refuse({-1, 4}, kF32, "18446744073709551615");
  refuse({int64_t{1} << 40, int64_t{1} << 40}, kF32, "too large");
  refuse({int64_t{1} << 61, 2}, kF32, "too large");
  refuse({2, 33}, kQ4_0, "whole number of groups");
  refuse({1000, 1000}, kF16, "do not lie in the file");
}

TEST(GgufFileTest, BadOffsetsAreRefusedByName) {
  const auto refuse = [](uint64_t offset, const char* message) {
    GgufWriter writer = SmallFile();
    writer.AddTensor("odd", {16}, kF32, std::string(64, 'x'), offset);
    ExpectRefused(writer.Bytes(),
                  AllOf(HasSubstr("tensor "), HasSubstr(message)));
  };
  refuse(1, "no multiple of 32");
  refuse(0, "overlaps another");
  refuse(32, "overlaps another");
  refuse(128, "do not lie in the file");
  refuse(~uint64_t{0} - 31, "do not lie in the file");
}

TEST(GgufFileTest, ATensorNameGivenTwiceIsRefused) {
  GgufWriter writer = SmallFile();
  writer.AddTensor("a", {1}, kF32, "xxxx");
  ExpectRefused(writer.Bytes(), HasSubstr("tensor a is given twice"));
}

TEST(GgufFileTest, ATensorOfAnUnknownTypeHasNoBytesButItsPlaceIsChecked) {
  GgufWriter writer = SmallFile();
  writer.AddTensor("odd", {64}, kQ5_0, std::string(44, 'x'));
  const ParsedFile parsed(writer.Bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();
  EXPECT_TRUE((*parsed).tensors().at("odd").bytes.empty());
  EXPECT_EQ(GgufTypeName(kQ5_0), "Q5_0 (6)");
  EXPECT_EQ(GgufTypeName(99), "type 99");

  writer.AddTensor("far", {64}, 99, "", uint64_t{1} << 40);
  ExpectRefused(writer.Bytes(), HasSubstr("tensor far"));
}

}  // namespace
}  // namespace farkv

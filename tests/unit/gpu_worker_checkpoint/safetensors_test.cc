#include "gpu_worker/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  ~SafetensorsTest() override { std::remove(path_.c_str()); }

  absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& header, const std::string& data) {
    std::string bytes(8, '\0');
    const uint64_t size = header.size();
    std::memcpy(bytes.data(), &size, 8);
    return OpenRaw(bytes + header + data);
  }

  absl::StatusOr<std::unique_ptr<SafetensorsFile>> OpenRaw(
      const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return SafetensorsFile::Open(path_);
  }

  void ExpectRefused(const std::string& header, const std::string& data,
                     const ::testing::Matcher<std::string>& message) {
    const auto file = Open(header, data);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(file.status().message()), message);
  }

  const std::string path_ = absl::StrCat(
      ::testing::TempDir(), "farkv-", getpid(), "-",
      ::testing::UnitTest::GetInstance()->current_test_info()->name(),
      ".safetensors");
};

constexpr char kGood[] =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST_F(SafetensorsTest, ATensorIsFoundByNameAndShape) {
  const auto file = Open(kGood, std::string(8, 'x'));

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Find("a", {2}).ok());
  EXPECT_EQ((*file)->Find("b", {2}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string((*file)->Find("a", {3}).status().message()),
              AllOf(HasSubstr("[2]"), HasSubstr("[3]")));
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  std::string bytes(8, '\0');
  const uint64_t size = std::strlen(kGood);
  std::memcpy(bytes.data(), &size, 8);
  bytes += std::string(kGood) + std::string(8, 'x');
  for (size_t length = 0; length < bytes.size(); ++length) {
    const absl::Status status = OpenRaw(bytes.substr(0, length)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << length;
    // What does not fit, and what there is.
    std::string found =
        absl::StrCat("header of ", size, " bytes in a file of ", length);
    if (length < 8) {
      found = absl::StrCat("has ", length, " bytes, the format needs 8");
    } else if (length >= bytes.size() - 8) {
      found = absl::StrCat(
          "tensor a: data_offsets [0, 8] do not lie in the file's ",
          length + 8 - bytes.size(), " data bytes");
    }
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(path_), HasSubstr(found)));
  }
  EXPECT_TRUE(OpenRaw(bytes).ok());
}

TEST_F(SafetensorsTest, InconsistentTensorsAreRefusedByName) {
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})",
                std::string(8, 'x'), AllOf(HasSubstr("a"), HasSubstr("9")));
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
                std::string(8, 'x'), HasSubstr("[3]"));
  ExpectRefused(R"({"a":{"dtype":"I7","shape":[2],"data_offsets":[0,8]}})",
                std::string(8, 'x'), HasSubstr("I7"));
  ExpectRefused(
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],
          "data_offsets":[0,8]}})",
      std::string(8, 'x'), HasSubstr("4611686018427387904"));
  ExpectRefused(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
          "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      std::string(12, 'x'), HasSubstr("overlap"));
  ExpectRefused("[1]", "", HasSubstr("JSON object"));
  ExpectRefused("{nonsense", "", HasSubstr("JSON text"));
  ExpectRefused(R"({"a":7})", "", HasSubstr("dtype"));
}

TEST_F(SafetensorsTest, BytesThatNoTensorHoldsAreRefused) {
  ExpectRefused(kGood, std::string(9, 'x'),
                AllOf(HasSubstr("data byte 8"), HasSubstr("of 9")));
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                std::string(12, 'x'), HasSubstr("data byte 0"));
  ExpectRefused(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
          "b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})",
      std::string(20, 'x'), HasSubstr("data byte 8"));
  ExpectRefused("{}", "x", HasSubstr("data byte 0"));
  EXPECT_TRUE(Open("{}", "").ok());
}

TEST_F(SafetensorsTest, HeadersOfAnotherFormAreRefused) {
  for (const char* header :
       {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})",
        R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],
             "data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8]}})",
        R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],
             "data_offsets":[0,8]}})",
        R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":{}}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
        R"({"a":{}})", R"({"a":[]})", R"({"a":null})"}) {
    ExpectRefused(header, std::string(8, 'x'), HasSubstr("tensor a"));
  }
}

TEST_F(SafetensorsTest, MetadataIsSkippedWhateverItHolds) {
  const auto file = Open(
      R"({"__metadata__":{"format":"pt","n":{"m":[1,[2]]}},
          "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      std::string(8, 'x'));

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->Contains("__metadata__"));
}

TEST_F(SafetensorsTest, DeeplyNestedHeadersAreRefusedEarly) {
  ExpectRefused(R"({"__metadata__":)" + std::string(1 << 20, '['), "",
                HasSubstr("nested deeper"));
}

TEST_F(SafetensorsTest, AHugeHeaderLengthAllocatesNothing) {
  const auto file = OpenRaw(std::string(16, '\xff'));

  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace farkv

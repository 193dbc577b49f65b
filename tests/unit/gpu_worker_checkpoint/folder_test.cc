// Finding the files of a checkpoint in a folder, and shards behind an index.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gpu_worker/checkpoint/safetensors_shards.h"
#include "gpu_worker/checkpoint/tensor_source.h"
#include "tests/testing/gguf_writer.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointFolderTest : public ::testing::Test {
 protected:
  CheckpointFolderTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CheckpointFolderTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  // A file with one F32 tensor of two numbers for each name.
  void WriteShard(const std::string& name,
                  const std::vector<std::string>& tensors) {
    std::string header = "{";
    for (size_t i = 0; i < tensors.size(); ++i) {
      absl::StrAppend(&header, i == 0 ? "" : ",", "\"", tensors[i],
                      R"(":{"dtype":"F32","shape":[2],"data_offsets":[)", 8 * i,
                      ",", 8 * i + 8, "]}");
    }
    header += "}";
    Write(name, testing::RawBytes(uint64_t{header.size()}) + header +
                    std::string(8 * tensors.size(), name[0]));
  }

  void WriteIndex(const std::string& weight_map) {
    Write("model.safetensors.index.json",
          absl::StrCat(R"({"metadata":{"total_size":16},"weight_map":)",
                       weight_map, "}"));
  }

  void WriteGguf(const std::string& name) {
    testing::GgufWriter writer;
    writer.Add("general.architecture", "qwen2");
    writer.AddTensor("output_norm.weight", {2}, 0, "gggggggg");
    Write(name, writer.Bytes());
  }

  std::string Refusal() const {
    const auto source = OpenTensors(folder_.string());
    EXPECT_FALSE(source.ok());
    return std::string(source.status().message());
  }

  // The first byte of `name`'s values, which tells its file.
  char FileOf(const std::string& name) const {
    const auto source = OpenTensors(folder_.string());
    EXPECT_TRUE(source.ok()) << source.status();
    const auto view = (*source)->Find(name, {2});
    EXPECT_TRUE(view.ok()) << view.status();
    return static_cast<char>(view->bytes[0]);
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      absl::StrCat(
          "farkv-checkpoint-", getpid(), "-",
          ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(CheckpointFolderTest, OneFileComesBeforeShardsAndShardsBeforeGguf) {
  WriteGguf("x.gguf");
  EXPECT_EQ(FileOf("model.norm.weight"), 'g');
  WriteShard("shard.safetensors", {"model.norm.weight"});
  WriteIndex(R"({"model.norm.weight":"shard.safetensors"})");
  EXPECT_EQ(FileOf("model.norm.weight"), 's');
  WriteShard("model.safetensors", {"model.norm.weight"});
  EXPECT_EQ(FileOf("model.norm.weight"), 'm');
}

TEST_F(CheckpointFolderTest, AGgufFileCanBeNamedItself) {
  WriteGguf("x.gguf");
  WriteGguf("y.gguf");

  EXPECT_TRUE(OpenTensors((folder_ / "x.gguf").string()).ok());
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("x.gguf"), HasSubstr("y.gguf")));
}

TEST_F(CheckpointFolderTest, WhatIsNoModelIsNamed) {
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("gguf")));
  Write("x.bin", "bytes");
  EXPECT_EQ(LocateCheckpoint((folder_ / "x.bin").string()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LocateCheckpoint((folder_ / "none").string()).status().code(),
            absl::StatusCode::kNotFound);
  Write("pytorch_model.bin", "bytes");
  EXPECT_THAT(Refusal(), HasSubstr("pytorch_model.bin is not read"));
  Write("x.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:00");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("x.gguf"), HasSubstr("git lfs pull")));
  std::filesystem::create_directories(folder_ / "model.safetensors");
  EXPECT_THAT(Refusal(), HasSubstr("not a regular file"));
}

TEST_F(CheckpointFolderTest, ShardsAreOneSource) {
  WriteShard("1.safetensors", {"a", "b"});
  WriteShard("2.safetensors", {"c"});
  WriteIndex(
      R"({"a":"1.safetensors","c":"2.safetensors","b":"1.safetensors"})");

  EXPECT_EQ(FileOf("a"), '1');
  EXPECT_EQ(FileOf("b"), '1');
  EXPECT_EQ(FileOf("c"), '2');
  const auto source = OpenTensors(folder_.string());
  EXPECT_EQ((*source)->FindUnused({"a", "b", "c", "d"}), std::nullopt);
  EXPECT_EQ((*source)->FindUnused({"a", "b", "d"}), "c");
  EXPECT_EQ((*source)->Find("d", {2}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string((*source)->Find("c", {3}).status().message()),
              AllOf(HasSubstr("2.safetensors"), HasSubstr("[3]")));
}

TEST_F(CheckpointFolderTest, AMissingOrBrokenShardIsNamed) {
  WriteShard("1.safetensors", {"a"});
  WriteIndex(R"({"a":"1.safetensors","c":"2.safetensors"})");
  EXPECT_THAT(Refusal(), HasSubstr("2.safetensors"));
  Write("2.safetensors", "garbage that is no safetensors file");
  EXPECT_THAT(Refusal(), HasSubstr("2.safetensors"));
}

TEST_F(CheckpointFolderTest, IndexAndShardsMustAgree) {
  WriteShard("1.safetensors", {"a", "b"});
  WriteShard("2.safetensors", {"c"});
  WriteIndex(R"({"a":"1.safetensors","b":"2.safetensors",
                 "c":"2.safetensors"})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("tensor b"), HasSubstr("2.safet")));
  WriteIndex(R"({"a":"1.safetensors","c":"2.safetensors"})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("tensor b"), HasSubstr("nowhere")));
  WriteShard("2.safetensors", {"c", "a"});
  WriteIndex(R"({"a":"1.safetensors","b":"1.safetensors",
                 "c":"2.safetensors"})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("tensor a"), HasSubstr("2.safet")));
}

TEST_F(CheckpointFolderTest, ShardNamesDoNotLeaveTheFolder) {
  WriteShard("1.safetensors", {"a"});
  for (const char* name :
       {"../1.safetensors", "/1.safetensors", "./1.safetensors",
        "sub/1.safetensors", "1.bin", "", "..", "1.safetensors\\u0000",
        "\\u0000.safetensors"}) {
    WriteIndex(absl::StrCat(R"({"a":")", name, R"("})"));
    EXPECT_THAT(Refusal(), HasSubstr("file name without a folder")) << name;
  }
}

TEST_F(CheckpointFolderTest, MalformedIndexesAreRefused) {
  WriteShard("1.safetensors", {"a"});
  for (const char* weight_map :
       {"{}", "[]", "7", R"({"a":7})", R"({"a":["1.safetensors"]})",
        R"({"a":{"b":"1.safetensors"}})", R"({"a":"1.safetensors")",
        R"({"a":"1.safetensors","a":"1.safetensors"})"}) {
    WriteIndex(weight_map);
    EXPECT_THAT(Refusal(), HasSubstr("index.json")) << weight_map;
  }
  for (const char* text : {"", "x", "[]", "{}", R"({"weight_map":1})"}) {
    Write("model.safetensors.index.json", text);
    EXPECT_THAT(Refusal(), HasSubstr("index.json")) << text;
  }
}

}  // namespace
}  // namespace farkv

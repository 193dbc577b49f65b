#include "gpu_worker/model/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/base/half.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kConfig[] = R"({"architectures": ["LlamaForCausalLM"],
  "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
  "num_attention_heads": 1, "vocab_size": 8, "max_position_embeddings": 64})";
constexpr char kTokenizer[] =
    R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";

TEST(ModelFilesTest, WhatAFolderLacksIsNamed) {
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ("farkv-model-files-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.safetensors") << "weights";
  const auto files = ModelFiles::Open(folder.string());
  ASSERT_TRUE(files.ok()) << files.status();

  EXPECT_THAT(std::string(files->ReadConfig().status().message()),
              AllOf(HasSubstr("config.json"), HasSubstr("No such file")));
  EXPECT_THAT(std::string(files->ReadTokenizer().status().message()),
              AllOf(HasSubstr(folder.string()), HasSubstr("tokenizer.json"),
                    HasSubstr("tokenizer.model")));
  std::filesystem::remove_all(folder);
}

TEST(ModelFilesTest, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ("farkv-model-fifo-test-" + std::to_string(getpid()));
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json",
        "tokenizer.model", "tokenizer_config.json", "chat_template.jinja"}) {
    for (const bool fifo : {true, false}) {
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "model.safetensors") << "weights";
      std::ofstream(folder / "config.json") << kConfig;
      if (std::string(name) != "tokenizer.model") {
        std::ofstream(folder / "tokenizer.json") << kTokenizer;
      }
      std::filesystem::remove(folder / name);
      if (fifo) {
        ASSERT_EQ(mkfifo((folder / name).c_str(), 0600), 0);
      } else {
        std::filesystem::create_directory(folder / name);
      }
      const auto files = ModelFiles::Open(folder.string());
      ASSERT_TRUE(files.ok()) << files.status();

      absl::Status status = files->ReadConfig().status();
      if (status.ok()) status = files->ReadTokenizer().status();

      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(name), HasSubstr("regular file")));
      std::filesystem::remove_all(folder);
    }
  }
}

TEST(HalfTest, EveryHalfEqualsItsDefinition) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31);
    const double fraction = (bits & 1023) / 1024.0;
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0.0) << bits;
      EXPECT_EQ(std::isinf(value), fraction == 0.0) << bits;
    } else {
      const double expected = exponent == 0
                                  ? std::ldexp(fraction, -14)
                                  : std::ldexp(1.0 + fraction, exponent - 15);
      EXPECT_EQ(static_cast<double>(value), sign * expected) << bits;
    }
  }
}

}  // namespace
}  // namespace farkv

#include "gpu_worker/model/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/base/half.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

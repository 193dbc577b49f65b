#include "kernels/stream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu_features.h"

namespace farkv {
namespace {

using testing::HasSubstr;

TEST(OpenDeviceTest, AnUnknownNameIsRefusedNamingIt) {
  ThreadPool pool(1);

  const auto device = OpenDevice("tpu", pool);

  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("\"tpu\""));
}

TEST(OpenDeviceTest, TheFakeDeviceIsAbsentFromAnOrdinaryProgram) {
  ThreadPool pool(1);

  const auto device = OpenDevice("fake", pool);

  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("-faults"));
}

TEST(OpenDeviceTest, CudaIsAbsentWithoutAToolkit) {
  ThreadPool pool(1);

  const auto device = OpenDevice("cuda", pool);

  if (device.ok()) GTEST_SKIP() << "this program has the CUDA backend";
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("cuda"));
}

TEST(KernelTargetTest, NamesTargetBf16KernelAndRevision) {
  const std::string target = KernelTarget();

  EXPECT_THAT(target,
              testing::MatchesRegex("[A-Z0-9_]+(\\+avx512bf16)?\\+k[0-9]+"));
  EXPECT_EQ(target.find("+avx512bf16") != std::string::npos, HasAvx512Bf16());
  EXPECT_EQ(target, KernelTarget());
}

}  // namespace
}  // namespace farkv

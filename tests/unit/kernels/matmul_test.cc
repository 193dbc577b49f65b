#include "kernels/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/bf16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/cpu_features.h"
#include "kernels/matmul_kernels.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

struct Shape {
  int32_t rows;  // N
  int32_t cols;  // K
};

// Projections of the built-in reasoner, of SmolLM2-135M and of Qwen3-0.6B.
constexpr Shape kModelShapes[] = {
    {256, 128},   {128, 128},   {128, 256},   {384, 128},   {128, 384},
    {80, 128},    {576, 576},   {192, 576},   {1536, 576},  {576, 1536},
    {2048, 1024}, {1024, 1024}, {1024, 2048}, {3072, 1024}, {1024, 3072}};
// No multiple of a panel, a vector, a pair or a tile.
constexpr Shape kOddShapes[] = {{1, 1},   {1, 7},    {2, 33},   {15, 17},
                                {63, 65}, {65, 64},  {80, 129}, {100, 1},
                                {130, 3}, {191, 257}};
constexpr int32_t kRowCounts[] = {1, 2, 3, 5, 6, 7, 8, 16, 33, 64, 256};

// Cheap, repeatable values in [-1, 1) without a pattern in either direction.
class Values {
 public:
  explicit Values(uint32_t seed) : state_(seed * 2654435761u + 1u) {}
  float Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state_)) / 2147483648.0f;
  }
  std::vector<float> Take(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = Next();
    return values;
  }

 private:
  uint32_t state_;
};

std::vector<uint16_t> ToBf16(const std::vector<float>& values) {
  std::vector<uint16_t> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), FloatToBf16);
  return out;
}

std::vector<float> Rounded(std::vector<float> values) {
  for (float& value : values) value = Bf16ToFloat(FloatToBf16(value));
  return values;
}

// The definition of MatMul, in double. `scale` receives the sums of absolute
// products, to which rounding errors are proportional.
std::vector<double> Reference(const std::vector<float>& activations,
                              const std::vector<float>& weight, Shape shape,
                              int32_t num_rows, std::vector<double>* scale) {
  std::vector<double> out;
  for (int32_t m = 0; m < num_rows; ++m) {
    for (int32_t n = 0; n < shape.rows; ++n) {
      const float* x = activations.data() + int64_t{m} * shape.cols;
      const float* w = weight.data() + int64_t{n} * shape.cols;
      double sum = 0;
      double magnitude = 0;
      for (int32_t k = 0; k < shape.cols; ++k) {
        const double product = double{x[k]} * double{w[k]};
        sum += product;
        magnitude += std::abs(product);
      }
      out.push_back(sum);
      scale->push_back(magnitude);
    }
  }
  return out;
}

std::string NameOf(matmul::Kernel kernel) {
  switch (kernel) {
    case matmul::Kernel::kAvx512Bf16:
      return "avx512bf16";
    case matmul::Kernel::kHighwayBf16:
      return "highway bf16";
    case matmul::Kernel::kHighwayF32:
      return "highway f32";
    case matmul::Kernel::kAvx512Vnni:
    case matmul::Kernel::kAvx2:
    case matmul::Kernel::kHighwayQuantized:
      break;  // matmul_quantized_test.cc
  }
  return "unknown";
}

WeightType TypeOf(matmul::Kernel kernel) {
  return kernel == matmul::Kernel::kHighwayF32 ? WeightType::kF32
                                               : WeightType::kBf16;
}

std::vector<matmul::Kernel> KernelsOfThisCpu() {
  std::vector<matmul::Kernel> kernels = {matmul::Kernel::kHighwayBf16,
                                         matmul::Kernel::kHighwayF32};
  if (HasAvx512Bf16()) kernels.push_back(matmul::Kernel::kAvx512Bf16);
  return kernels;
}

// A weight packed in plain memory, to call one kernel whatever the dispatch
// would choose. Checks that nothing is written behind the output.
class Packed {
 public:
  Packed(Shape shape, matmul::Kernel kernel, uint32_t seed)
      : shape_(shape), kernel_(kernel) {
    values_ = Values(seed).Take(int64_t{shape.rows} * shape.cols);
    const WeightType type = TypeOf(kernel);
    if (type == WeightType::kBf16) values_ = Rounded(std::move(values_));
    const std::vector<uint16_t> halves = ToBf16(values_);
    const void* host = type == WeightType::kBf16
                           ? static_cast<const void*>(halves.data())
                           : static_cast<const void*>(values_.data());
    const size_t bytes = matmul::PanelBytes(type, shape.cols);
    const int32_t num_panels = (shape.rows + 63) / 64;
    panels_.resize(static_cast<size_t>(num_panels) * bytes);
    for (int32_t p = 0; p < num_panels; ++p) {
      matmul::PackPanel(type, host, shape.rows, shape.cols, p,
                        panels_.data() + static_cast<size_t>(p) * bytes);
    }
  }

  const std::vector<float>& values() const { return values_; }

  std::vector<float> Times(ThreadPool& pool, const float* activations,
                           int32_t num_rows) const {
    const size_t size =
        static_cast<size_t>(num_rows) * static_cast<size_t>(shape_.rows);
    std::vector<float> out(size + kGuard, kUntouched);
    const matmul::Product product{.kernel = kernel_,
                                  .type = TypeOf(kernel_),
                                  .panels = panels_.data(),
                                  .rows = shape_.rows,
                                  .cols = shape_.cols,
                                  .out = out.data()};
    matmul::Multiply(pool, activations, num_rows, {&product, 1});
    for (size_t i = size; i < out.size(); ++i) EXPECT_EQ(out[i], kUntouched);
    out.resize(size);
    return out;
  }

 private:
  static constexpr size_t kGuard = matmul::kPanelColumns;
  static constexpr float kUntouched = -7.0f;

  Shape shape_;
  matmul::Kernel kernel_;
  std::vector<float> values_;
  std::vector<std::byte> panels_;
};

// Restores dispatch to the best target when a test ends.
class TargetGuard {
 public:
  explicit TargetGuard(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
  }
  ~TargetGuard() { hwy::SetSupportedTargetsForTest(0); }
};

void ExpectCloseToReference(matmul::Kernel kernel, Shape shape,
                            int32_t num_rows) {
  ThreadPool pool(1);
  const Packed weight(shape, kernel, 1);
  std::vector<float> activations =
      Values(2).Take(int64_t{num_rows} * shape.cols);
  const std::vector<float> out =
      weight.Times(pool, activations.data(), num_rows);
  if (TypeOf(kernel) == WeightType::kBf16) {
    activations = Rounded(std::move(activations));
  }
  std::vector<double> scale;
  const std::vector<double> expected =
      Reference(activations, weight.values(), shape, num_rows, &scale);
  // One rounding per product and one per sum, each at most 2^-24 of the terms
  // so far; far fewer add up in practice.
  const double tolerance = 1e-7 * (4 + std::sqrt(double(shape.cols)));
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_NEAR(out[i], expected[i], tolerance * scale[i] + 1e-30)
        << NameOf(kernel) << " " << shape.rows << "x" << shape.cols
        << " element " << i;
  }
}

// Every row of products of all row counts and thread counts against the same
// row computed alone on one thread.
void ExpectRowsKeepTheirBits(matmul::Kernel kernel, Shape shape,
                             std::span<const int32_t> row_counts) {
  ThreadPool one(1), two(2), three(3);
  const Packed weight(shape, kernel, 3);
  const int32_t most = *std::max_element(row_counts.begin(), row_counts.end());
  // 16 different rows, repeated so that a row stands at many positions.
  constexpr int32_t kDistinct = 16;
  const std::vector<float> rows =
      Values(4).Take(int64_t{kDistinct} * shape.cols);
  std::vector<std::vector<float>> alone;
  for (int32_t r = 0; r < kDistinct; ++r) {
    alone.push_back(
        weight.Times(one, rows.data() + int64_t{r} * shape.cols, 1));
  }
  const auto row_at = [](int32_t m) {
    return (m * 5 + m / kDistinct) % kDistinct;
  };
  std::vector<float> activations;
  for (int32_t m = 0; m < most; ++m) {
    const auto from = rows.begin() + int64_t{row_at(m)} * shape.cols;
    activations.insert(activations.end(), from, from + shape.cols);
  }
  for (const int32_t num_rows : row_counts) {
    for (ThreadPool* pool : {&one, &two, &three}) {
      const std::vector<float> out =
          weight.Times(*pool, activations.data(), num_rows);
      for (int32_t m = 0; m < num_rows; ++m) {
        const std::vector<float>& expected =
            alone[static_cast<size_t>(row_at(m))];
        ASSERT_EQ(std::memcmp(out.data() + int64_t{m} * shape.rows,
                              expected.data(), expected.size() * sizeof(float)),
                  0)
            << NameOf(kernel) << " " << shape.rows << "x" << shape.cols
            << ", row " << m << " of " << num_rows << " on "
            << pool->num_threads() << " threads";
      }
    }
  }
}

TEST(MatMulTest, EveryKernelComputesTheDefinition) {
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const Shape shape : kOddShapes) {
      for (const int32_t num_rows : {1, 4, 13}) {
        ExpectCloseToReference(kernel, shape, num_rows);
      }
    }
    ExpectCloseToReference(kernel, {576, 1536}, 7);
    ExpectCloseToReference(kernel, {80, 128}, 33);
  }
}

TEST(MatMulTest, ARowKeepsItsBitsInAnyCompanyOverTheShapesOfRealModels) {
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const Shape shape : kModelShapes) {
#ifdef FARKV_SANITIZED
      // The release build looks at all of them.
      if (shape.rows > 600 || shape.cols > 600) continue;
#endif
      ExpectRowsKeepTheirBits(kernel, shape, kRowCounts);
    }
  }
}

TEST(MatMulTest, ARowKeepsItsBitsInAnyCompanyOverOddShapes) {
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const Shape shape : kOddShapes) {
      ExpectRowsKeepTheirBits(kernel, shape, kRowCounts);
    }
  }
}

TEST(MatMulTest, ARowKeepsItsBitsBeyondOneScratchOfRows) {
  constexpr int32_t kMany[] = {257, 600};
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    ExpectRowsKeepTheirBits(kernel, {80, 33}, kMany);
  }
}

TEST(MatMulTest, EveryHighwayTargetComputesTheDefinitionInAnyCompany) {
  constexpr int32_t kFew[] = {1, 2, 5, 6, 16, 33};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const TargetGuard guard(target);
    for (const matmul::Kernel kernel :
         {matmul::Kernel::kHighwayBf16, matmul::Kernel::kHighwayF32}) {
      for (const Shape shape : {Shape{130, 129}, Shape{192, 576}}) {
        ExpectCloseToReference(kernel, shape, 7);
        ExpectRowsKeepTheirBits(kernel, shape, kFew);
      }
    }
  }
}

TEST(MatMulTest, HighwayTargetsWithAFusedMultiplyAddAgreeBitForBit) {
  ThreadPool pool(1);
  const Shape shape{192, 576};
  const Packed weight(shape, matmul::Kernel::kHighwayF32, 5);
  const std::vector<float> row = Values(6).Take(shape.cols);
  std::vector<std::vector<float>> results;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (target > HWY_AVX2) continue;  // smaller is better; AVX2 brings FMA
    const TargetGuard guard(target);
    results.push_back(weight.Times(pool, row.data(), 1));
  }
  for (const std::vector<float>& result : results) {
    EXPECT_EQ(result, results.front());
  }
}

TEST(MatMulTest, ActivationsAreRoundedToBf16OnceAndOnlyForBf16Weights) {
  ThreadPool pool(1);
  const float fine = 1.0f + 1.0f / 512.0f;  // halfway: ties to even, 1.0
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    const Packed weight({1, 1}, kernel, 7);

    const std::vector<float> out = weight.Times(pool, &fine, 1);

    const float x = TypeOf(kernel) == WeightType::kBf16 ? 1.0f : fine;
    EXPECT_EQ(out[0], x * weight.values()[0]) << NameOf(kernel);
  }
}

TEST(MatMulTest, AnOddLastElementIsNotPairedWithWhatTheScratchHeldBefore) {
  ThreadPool pool(1);
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    const std::vector<float> infinite(8,
                                      std::numeric_limits<float>::infinity());
    const std::vector<float> ones(7, 1.0f);
    const Packed even({3, 8}, kernel, 8);
    const Packed odd({3, 7}, kernel, 9);

    even.Times(pool, infinite.data(), 1);
    const std::vector<float> out = odd.Times(pool, ones.data(), 1);

    for (const float value : out) {
      EXPECT_TRUE(std::isfinite(value)) << NameOf(kernel) << " " << value;
    }
  }
}

class DeviceMatMulTest
    : public ::testing::TestWithParam<std::tuple<const char*, WeightType>> {};

// On the fake device this also shows that device memory is touched by
// operations only, and host memory not after PackWeight has returned.
TEST_P(DeviceMatMulTest, AStreamComputesWhatTheKernelComputes) {
  const auto [device_name, type] = GetParam();
  ThreadPool pool(2);
  auto device = OpenDevice(device_name, pool);
  ASSERT_TRUE(device.ok()) << device.status();
  const std::unique_ptr<Stream> stream = (*device)->NewStream();
  const Shape shape{200, 77};
  const Packed expected(shape, matmul::ChooseKernel(type), 10);
  const std::vector<float> activations = Values(11).Take(9 * shape.cols);
  std::vector<float> out(9 * 200);
  auto device_in = (*device)->Allocate(activations.size() * sizeof(float));
  auto device_out = (*device)->Allocate(out.size() * sizeof(float));
  ASSERT_TRUE(device_in.ok() && device_out.ok());

  std::vector<uint16_t> halves = ToBf16(expected.values());
  std::vector<float> floats = expected.values();
  absl::StatusOr<PackedWeight> weight = PackWeight(
      **device, *stream, type,
      type == WeightType::kBf16 ? static_cast<const void*>(halves.data())
                                : static_cast<const void*>(floats.data()),
      shape.rows, shape.cols);
  ASSERT_TRUE(weight.ok()) << weight.status();
  std::fill(halves.begin(), halves.end(), uint16_t{0});
  std::fill(floats.begin(), floats.end(), 0.0f);
  stream->Copy(device_in->data(), activations.data(), device_in->size());
  MatMul(*stream, reinterpret_cast<const float*>(device_in->data()), 9, *weight,
         reinterpret_cast<float*>(device_out->data()));
  stream->Copy(out.data(), device_out->data(), device_out->size());
  stream->Synchronize();

  EXPECT_EQ(weight->rows, shape.rows);
  EXPECT_EQ(weight->cols, shape.cols);
  EXPECT_EQ(out, expected.Times(pool, activations.data(), 9));
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DeviceMatMulTest,
    ::testing::Combine(::testing::Values("cpu", "fake"),
                       ::testing::Values(WeightType::kBf16, WeightType::kF32)));

// A mapped file puts its tensors anywhere; UBSan sees the load.
TEST(PackWeightTest, HostDataOfAnyAlignmentIsPackedAlike) {
  ThreadPool pool(1);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice("cpu", pool);
  ASSERT_TRUE(device.ok()) << device.status();
  const std::unique_ptr<Stream> stream = (*device)->NewStream();
  const std::vector<float> values = Values(12).Take(70 * 9);
  for (const WeightType type : {WeightType::kBf16, WeightType::kF32}) {
    std::vector<std::byte> shifted(values.size() * sizeof(float) + 8);
    std::vector<std::string> packed;
    for (size_t shift = 0; shift < 8; ++shift) {
      std::memcpy(shifted.data() + shift, values.data(),
                  values.size() * sizeof(float));
      const absl::StatusOr<PackedWeight> weight =
          PackWeight(**device, *stream, type, shifted.data() + shift, 70, 9);
      ASSERT_TRUE(weight.ok()) << weight.status();
      packed.emplace_back(reinterpret_cast<const char*>(weight->data.data()),
                          weight->data.size());
    }
    EXPECT_THAT(packed, ::testing::Each(packed.front()));
  }
}

TEST(PackWeightTest, AnEmptyShapeIsRefusedWithItsNumbers) {
  ThreadPool pool(1);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice("cpu", pool);
  ASSERT_TRUE(device.ok()) << device.status();
  const std::unique_ptr<Stream> stream = (*device)->NewStream();
  const float value = 1.0f;

  const absl::StatusOr<PackedWeight> weight =
      PackWeight(**device, *stream, WeightType::kF32, &value, 0, 5);

  EXPECT_EQ(weight.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(weight.status().message()), HasSubstr("0 x 5"));
}

}  // namespace
}  // namespace farkv

// Products with quantised weights, against weights decoded in double and
// activations rounded as matmul.h documents.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/cpu_features.h"
#include "kernels/matmul.h"
#include "kernels/matmul_kernels.h"
#include "tests/unit/kernels/stored_weight.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

std::vector<float> RandomRows(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(2.0 * ToUnit(SplitMix64At(seed, i)) - 1.0);
  }
  return values;
}

std::vector<matmul::Kernel> KernelsOfThisCpu() {
  std::vector<matmul::Kernel> kernels = {matmul::Kernel::kHighwayQuantized};
  if (HasAvx2()) kernels.push_back(matmul::Kernel::kAvx2);
  if (HasAvx512Vnni()) kernels.push_back(matmul::Kernel::kAvx512Vnni);
  return kernels;
}

// A weight packed in plain memory, to call one kernel whatever the dispatch
// would choose. Checks that nothing is written behind the output.
class Packed {
 public:
  explicit Packed(const StoredWeight& weight) : weight_(weight) {
    const size_t bytes = matmul::PanelBytes(weight.type, weight.cols);
    const int32_t num_panels = (weight.rows + 63) / 64;
    panels_.resize(static_cast<size_t>(num_panels) * bytes);
    for (int32_t p = 0; p < num_panels; ++p) {
      matmul::PackPanel(weight.type, weight.bytes.data(), weight.rows,
                        weight.cols, p,
                        panels_.data() + static_cast<size_t>(p) * bytes);
    }
  }

  std::vector<float> Times(matmul::Kernel kernel, ThreadPool& pool,
                           const float* activations, int32_t num_rows) const {
    const size_t size =
        static_cast<size_t>(num_rows) * static_cast<size_t>(weight_.rows);
    std::vector<float> out(size + kGuard, kUntouched);
    const matmul::Product product{.kernel = kernel,
                                  .type = weight_.type,
                                  .panels = panels_.data(),
                                  .rows = weight_.rows,
                                  .cols = weight_.cols,
                                  .out = out.data()};
    matmul::Multiply(pool, activations, num_rows, {&product, 1});
    for (size_t i = size; i < out.size(); ++i) EXPECT_EQ(out[i], kUntouched);
    out.resize(size);
    return out;
  }

 private:
  static constexpr size_t kGuard = matmul::kPanelColumns;
  static constexpr float kUntouched = -7.0f;

  const StoredWeight& weight_;
  std::vector<std::byte> panels_;
};

// What the activations count as: scale * integer for each part of 32.
std::vector<double> Quantized(const std::vector<float>& values) {
  std::vector<double> out;
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    const std::span<const float> part(values.data() + begin, 32);
    float most = 0;
    for (const float x : part) most = std::max(most, std::abs(x));
    const float inverse = most == 0 ? 0 : 127.0f / most;
    for (const float x : part) {
      out.push_back(double{most / 127.0f} *
                    std::nearbyint(double{x * inverse}));
    }
  }
  return out;
}

void ExpectCloseToReference(matmul::Kernel kernel, const StoredWeight& weight,
                            const std::vector<float>& activations) {
  ThreadPool pool(1);
  const auto cols = static_cast<size_t>(weight.cols);
  const auto rows = static_cast<size_t>(weight.rows);
  const size_t num_rows = activations.size() / cols;
  const std::vector<float> out = Packed(weight).Times(
      kernel, pool, activations.data(), static_cast<int32_t>(num_rows));
  const std::vector<double> x = Quantized(activations);
  for (size_t i = 0; i < out.size(); ++i) {
    const double* a = &x[i / rows * cols];
    const double* w = &weight.values[i % rows * cols];
    double sum = 0;
    double scale = 0;
    for (size_t k = 0; k < cols; ++k) {
      sum += a[k] * w[k];
      scale += std::abs(a[k]) * (std::abs(w[k]) + 1);
    }
    ASSERT_NEAR(out[i], sum, 4e-7 * scale)
        << WeightTypeName(weight.type) << " " << rows << "x" << cols
        << " element " << i;
  }
}

// Every row of products of all row counts and thread counts against the same
// row computed alone on one thread.
void ExpectRowsKeepTheirBits(matmul::Kernel kernel, const StoredWeight& weight,
                             std::span<const int32_t> row_counts) {
  ThreadPool one(1), two(2), three(3);
  const Packed packed(weight);
  const int32_t most = *std::max_element(row_counts.begin(), row_counts.end());
  const std::vector<float> activations =
      RandomRows(int64_t{most} * weight.cols, 4);
  std::vector<std::vector<float>> alone;
  for (int32_t r = 0; r < most; ++r) {
    alone.push_back(packed.Times(
        kernel, one, activations.data() + int64_t{r} * weight.cols, 1));
  }
  for (const int32_t num_rows : row_counts) {
    for (ThreadPool* pool : {&one, &two, &three}) {
      const std::vector<float> out =
          packed.Times(kernel, *pool, activations.data(), num_rows);
      for (int32_t m = 0; m < num_rows; ++m) {
        const std::vector<float>& expected = alone[static_cast<size_t>(m)];
        ASSERT_EQ(std::memcmp(out.data() + int64_t{m} * weight.rows,
                              expected.data(), expected.size() * sizeof(float)),
                  0)
            << WeightTypeName(weight.type) << " " << weight.rows << "x"
            << weight.cols << ", row " << m << " of " << num_rows << " on "
            << pool->num_threads() << " threads";
      }
    }
  }
}

// Restores dispatch to the best target when a test ends.
class TargetGuard {
 public:
  explicit TargetGuard(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
  }
  ~TargetGuard() { hwy::SetSupportedTargetsForTest(0); }
};

// Every kernel, the portable one on every Highway target, against the bits of
// what the dispatch chooses.
void ExpectKernelsAgree(const StoredWeight& weight,
                        const std::vector<float>& activations) {
  ThreadPool pool(1);
  const Packed packed(weight);
  const auto num_rows = static_cast<int32_t>(activations.size() /
                                             static_cast<size_t>(weight.cols));
  const auto times = [&](matmul::Kernel kernel) {
    return packed.Times(kernel, pool, activations.data(), num_rows);
  };
  const std::vector<float> expected = times(matmul::ChooseKernel(weight.type));
  const auto expect_equal = [&](matmul::Kernel kernel) {
    const std::vector<float> out = times(kernel);
    ASSERT_EQ(
        std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
        << matmul::KernelName(kernel) << " " << WeightTypeName(weight.type)
        << " " << weight.rows << "x" << weight.cols << " times " << num_rows;
  };
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) expect_equal(kernel);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const TargetGuard guard(target);
    expect_equal(matmul::Kernel::kHighwayQuantized);
  }
}

TEST(QuantizedMatMulTest, EveryKernelComputesTheDefinitionForEveryType) {
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const WeightType type : kQuantizedTypes) {
      const int32_t group = GroupElements(type);
      for (const int32_t rows : {1, 15, 63, 64, 65, 130}) {
        const int32_t cols = group * (rows % 3 + 1);
        const StoredWeight weight = RandomStoredWeight(type, rows, cols, 1);
        for (const int32_t num_rows : {1, 2, 4, 13}) {
          ExpectCloseToReference(kernel, weight,
                                 RandomRows(int64_t{num_rows} * cols, 2));
        }
      }
      ExpectCloseToReference(kernel, RandomStoredWeight(type, 576, 1536, 3),
                             RandomRows(7 * 1536, 4));
    }
  }
}

TEST(QuantizedMatMulTest, TheLargestIntegersStayExact) {
  // All products of a part have one sign and the largest magnitude.
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const WeightType type : kQuantizedTypes) {
      for (const int quants : {0x00, 0x7f, 0x80, 0xff}) {
        for (const int scales : {0x7f, 0x80}) {
          const StoredWeight weight =
              ConstantStoredWeight(type, 3, 512, static_cast<uint8_t>(quants),
                                   static_cast<uint8_t>(scales));
          for (const float x : {127.0f, -127.0f}) {
            ExpectCloseToReference(kernel, weight, std::vector<float>(512, x));
          }
        }
      }
    }
  }
}

TEST(QuantizedMatMulTest, AllKernelsAndHighwayTargetsAgreeBitForBit) {
  for (const WeightType type : kQuantizedTypes) {
    for (const int32_t rows : {1, 37, 130}) {
      const StoredWeight weight = RandomStoredWeight(type, rows, 768, 5);
      for (int32_t num_rows = 1; num_rows <= 9; ++num_rows) {
        ExpectKernelsAgree(weight, RandomRows(num_rows * 768, 6));
      }
    }
  }
}

// Sums of a part are at their largest, with one sign or with signs that cancel
// within a pair, a step, or a half: where a kernel adds in 16 bits, this is
// what saturates.
TEST(QuantizedMatMulTest, AllKernelsAndHighwayTargetsAgreeAtTheExtremes) {
  for (const WeightType type : kQuantizedTypes) {
    for (const int quants : {0x00, 0x7f, 0x80, 0xf0, 0xff}) {
      for (const int scales : {0x7f, 0x80}) {
        const StoredWeight weight =
            ConstantStoredWeight(type, 65, 256, static_cast<uint8_t>(quants),
                                 static_cast<uint8_t>(scales));
        std::vector<float> activations;
        for (const int32_t period : {1, 2, 4, 16, 256}) {
          for (int32_t k = 0; k < 256; ++k) {
            activations.push_back(k / period % 2 == 0 ? -127.0f : 127.0f);
          }
        }
        ExpectKernelsAgree(weight, activations);
      }
    }
  }
}

TEST(QuantizedMatMulTest, ARowKeepsItsBitsInAnyCompany) {
  constexpr int32_t kRowCounts[] = {1, 2, 3, 5, 6, 7, 8, 16, 33, 64, 130};
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const WeightType type : kQuantizedTypes) {
      ExpectRowsKeepTheirBits(kernel, RandomStoredWeight(type, 100, 768, 7),
                              kRowCounts);
      ExpectRowsKeepTheirBits(kernel, RandomStoredWeight(type, 576, 512, 8),
                              kRowCounts);
    }
  }
}

TEST(QuantizedMatMulTest, ARowKeepsItsBitsBeyondOneScratchOfRows) {
  constexpr int32_t kMany[] = {257, 600};
  for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
    for (const WeightType type : {WeightType::kQ4_1, WeightType::kQ8_0}) {
      ExpectRowsKeepTheirBits(kernel, RandomStoredWeight(type, 80, 64, 9),
                              kMany);
    }
  }
}

struct QuantizedPart {
  std::vector<int> quants;
  float scale = 0;
  std::vector<int> sums;
};

QuantizedPart QuantizeOnePart(const std::vector<float>& values) {
  const matmul::QuantizedRowLayout layout(32);
  std::vector<std::byte> row(layout.bytes);
  matmul::QuantizeRow(values.data(), 32, row.data());
  QuantizedPart part;
  for (size_t i = 0; i < 32; ++i) {
    part.quants.push_back(static_cast<int8_t>(row[i]));
  }
  std::memcpy(&part.scale, &row[layout.scales], sizeof(float));
  int32_t sums[2];
  std::memcpy(sums, &row[layout.sums], sizeof(sums));
  part.sums.assign(sums, sums + 2);
  return part;
}

TEST(QuantizeRowTest, IntegersAreRoundedToNearestEvenWithTheirSums) {
  std::vector<float> values(32, 0.0f);
  values[0] = 127.0f;
  values[1] = 2.5f;
  values[2] = 3.5f;
  values[3] = -2.5f;
  values[16] = -127.0f;
  values[31] = 0.49f;

  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const TargetGuard guard(target);
    const QuantizedPart part = QuantizeOnePart(values);

    EXPECT_EQ(part.scale, 1.0f);
    EXPECT_EQ(part.quants[0], 127);
    EXPECT_EQ(part.quants[1], 2);
    EXPECT_EQ(part.quants[2], 4);
    EXPECT_EQ(part.quants[3], -2);
    EXPECT_EQ(part.quants[16], -127);
    EXPECT_EQ(part.quants[31], 0);
    EXPECT_THAT(part.sums, testing::ElementsAre(131, -127));
  }
}

TEST(QuantizeRowTest, APartOfNothingIsZeroAndTheLargestMagnitudeFits) {
  const QuantizedPart zero = QuantizeOnePart(std::vector<float>(32, 0x1p-101f));
  EXPECT_EQ(zero.scale, 0.0f);
  EXPECT_THAT(zero.quants, testing::Each(0));

  const float most = std::numeric_limits<float>::max();
  const QuantizedPart large = QuantizeOnePart(std::vector<float>(32, -most));
  EXPECT_EQ(large.scale, most / 127.0f);
  EXPECT_THAT(large.quants, testing::Each(-127));
}

TEST(QuantizeRowTest, AnInfinityOrNanMakesItsRowNanAndNoOther) {
  ThreadPool pool(1);
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    const StoredWeight weight =
        RandomStoredWeight(WeightType::kQ8_0, 5, 64, 10);
    std::vector<float> activations = RandomRows(2 * 64, 11);
    activations[40] = bad;
    for (const matmul::Kernel kernel : KernelsOfThisCpu()) {
      const std::vector<float> out =
          Packed(weight).Times(kernel, pool, activations.data(), 2);

      for (size_t i = 0; i < 5; ++i) {
        EXPECT_TRUE(std::isnan(out[i])) << out[i];
        EXPECT_TRUE(std::isfinite(out[5 + i])) << out[5 + i];
      }
    }
  }
}

class DeviceQuantizedMatMulTest
    : public ::testing::TestWithParam<std::tuple<const char*, WeightType>> {};

// On the fake device this also shows that device memory is touched by
// operations only, and host memory not after PackWeight has returned.
TEST_P(DeviceQuantizedMatMulTest, AStreamComputesWhatTheKernelComputes) {
  const auto [device_name, type] = GetParam();
  ThreadPool pool(2);
  auto device = OpenDevice(device_name, pool);
  ASSERT_TRUE(device.ok()) << device.status();
  const std::unique_ptr<Stream> stream = (*device)->NewStream();
  const int32_t cols = 2 * GroupElements(type);
  const StoredWeight stored = RandomStoredWeight(type, 200, cols, 12);
  const std::vector<float> activations = RandomRows(9 * cols, 13);
  std::vector<float> out(9 * 200);
  auto device_in = (*device)->Allocate(activations.size() * sizeof(float));
  auto device_out = (*device)->Allocate(out.size() * sizeof(float));
  ASSERT_TRUE(device_in.ok() && device_out.ok());

  std::vector<std::byte> host(stored.bytes.size() + 1);  // at an odd address
  std::copy(stored.bytes.begin(), stored.bytes.end(), host.begin() + 1);
  absl::StatusOr<PackedWeight> weight =
      PackWeight(**device, *stream, type, host.data() + 1, 200, cols);
  ASSERT_TRUE(weight.ok()) << weight.status();
  std::fill(host.begin(), host.end(), std::byte{0});
  stream->Copy(device_in->data(), activations.data(), device_in->size());
  MatMul(*stream, reinterpret_cast<const float*>(device_in->data()), 9, *weight,
         reinterpret_cast<float*>(device_out->data()));
  stream->Copy(out.data(), device_out->data(), device_out->size());
  stream->Synchronize();

  EXPECT_EQ(weight->type, type);
  EXPECT_EQ(out, Packed(stored).Times(matmul::ChooseKernel(type), pool,
                                      activations.data(), 9));
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DeviceQuantizedMatMulTest,
    ::testing::Combine(::testing::Values("cpu", "fake"),
                       ::testing::ValuesIn(kQuantizedTypes)));

// Types mixed as files mix them: bf16 and quantised forms of the rows at once.
TEST(QuantizedMatMulTest, ProductsOfTheSameActivationsKeepTheirBits) {
  for (const int num_threads : {1, 3}) {
    ThreadPool pool(num_threads);
    auto device = OpenDevice("cpu", pool).value();
    const std::unique_ptr<Stream> stream = device->NewStream();
    std::vector<PackedWeight> weights;
    for (const WeightType type : kQuantizedTypes) {
      const StoredWeight stored = RandomStoredWeight(type, 100, 256, 14);
      weights.push_back(
          PackWeight(*device, *stream, type, stored.bytes.data(), 100, 256)
              .value());
    }
    for (const WeightType type : {WeightType::kBf16, WeightType::kF32}) {
      const std::vector<std::byte> ones(100 * 256 * 4, std::byte{0x3f});
      weights.push_back(
          PackWeight(*device, *stream, type, ones.data(), 100, 256).value());
    }
    for (const int32_t num_rows : {1, 7, 300}) {
      const std::vector<float> activations = RandomRows(num_rows * 256, 15);
      const size_t size = static_cast<size_t>(num_rows) * 100;
      std::vector<std::vector<float>> alone, together;
      std::vector<MatMulOutput> outputs;
      for (const PackedWeight& weight : weights) {
        alone.emplace_back(size);
        MatMul(*stream, activations.data(), num_rows, weight,
               alone.back().data());
        together.emplace_back(size, -7.0f);
        outputs.push_back({&weight, together.back().data()});
      }

      MatMul(*stream, activations.data(), num_rows, outputs);
      stream->Synchronize();

      EXPECT_EQ(together, alone);
    }
  }
}

TEST(PackQuantizedWeightTest, PackedBytesAreThoseOfTheFileAndThreePercent) {
  for (const WeightType type : kQuantizedTypes) {
    const auto packed = static_cast<double>(matmul::PanelBytes(type, 1536));
    const auto stored = static_cast<double>(64 * StoredRowBytes(type, 1536));
    EXPECT_LE(packed, 1.03 * stored) << WeightTypeName(type);
  }
}

TEST(PackQuantizedWeightTest, RowsOfBrokenGroupsAreRefusedWithTheirNumbers) {
  ThreadPool pool(1);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice("cpu", pool);
  ASSERT_TRUE(device.ok()) << device.status();
  const std::unique_ptr<Stream> stream = (*device)->NewStream();
  const std::vector<std::byte> bytes(4096);
  for (const WeightType type : kQuantizedTypes) {
    const int32_t cols = GroupElements(type) + GroupElements(type) / 2;

    const absl::StatusOr<PackedWeight> weight =
        PackWeight(**device, *stream, type, bytes.data(), 2, cols);

    EXPECT_EQ(weight.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(weight.status().message());
    EXPECT_THAT(message, HasSubstr("2 x " + std::to_string(cols)));
    EXPECT_THAT(message, HasSubstr(WeightTypeName(type)));
    EXPECT_THAT(message, HasSubstr(std::to_string(GroupElements(type))));
  }
}

}  // namespace
}  // namespace farkv

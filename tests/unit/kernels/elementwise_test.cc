#include "kernels/elementwise.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/bf16.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;

std::vector<float> RandomRow(size_t count, uint64_t seed) {
  std::vector<float> row(count);
  for (size_t i = 0; i < count; ++i) {
    row[i] = static_cast<float>(8.0 * ToUnit(SplitMix64At(seed, i)) - 4.0);
  }
  return row;
}

std::vector<uint32_t> Bits(std::span<const float> row) {
  std::vector<uint32_t> bits;
  for (float x : row) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// Every test runs on both devices: operations must not read their small host
// arrays late, nor touch device memory on the calling thread.
class ElementwiseTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    device_ = OpenDevice(GetParam(), pool_).value();
    stream_ = device_->NewStream();
  }

  template <typename T>
  DeviceBuffer Upload(const std::vector<T>& host) {
    DeviceBuffer buffer = device_->Allocate(host.size() * sizeof(T)).value();
    stream_->Copy(buffer.data(), host.data(), buffer.size());
    stream_->Synchronize();
    return buffer;
  }

  template <typename T = float>
  std::vector<T> Download(const DeviceBuffer& buffer) {
    std::vector<T> host(buffer.size() / sizeof(T));
    stream_->Copy(host.data(), buffer.data(), buffer.size());
    stream_->Synchronize();
    return host;
  }

  static float* Floats(const DeviceBuffer& buffer) {
    return reinterpret_cast<float*>(buffer.data());
  }

  std::vector<float> Norm(const std::vector<float>& rows,
                          const std::vector<float>& weight, float epsilon) {
    DeviceBuffer in = Upload(rows);
    DeviceBuffer scale = Upload(weight);
    DeviceBuffer out = device_->Allocate(in.size()).value();
    RmsNorm(*stream_, Floats(in), Floats(scale), epsilon,
            static_cast<int32_t>(rows.size() / weight.size()),
            static_cast<int32_t>(weight.size()), Floats(out));
    return Download(out);
  }

  std::vector<float> Silu(const std::vector<float>& gates,
                          const std::vector<float>& ups) {
    DeviceBuffer gate = Upload(gates);
    DeviceBuffer up = Upload(ups);
    SiluMultiply(*stream_, Floats(gate), Floats(up),
                 static_cast<int64_t>(gates.size()), Floats(gate));
    return Download(gate);
  }

  std::vector<float> Rotated(const std::vector<float>& heads,
                             std::vector<int64_t> positions,
                             std::vector<double> frequencies,
                             int32_t num_heads) {
    DeviceBuffer buffer = Upload(heads);
    Rope(*stream_, Floats(buffer), positions, frequencies, num_heads,
         static_cast<int32_t>(2 * frequencies.size()));
    // Both were read before Rope returned.
    std::ranges::fill(positions, -1);
    std::ranges::fill(frequencies, -1.0);
    return Download(buffer);
  }

  ThreadPool pool_{2};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

INSTANTIATE_TEST_SUITE_P(Devices, ElementwiseTest,
                         testing::Values("cpu", "fake"),
                         [](const auto& device) { return device.param; });

TEST_P(ElementwiseTest, RmsNormDividesByTheRootOfTheMeanSquare) {
  // Mean square (9 + 16) / 2 = 12.5, plus 3.5 is 16.
  EXPECT_THAT(Norm({3, -4}, {1, 2}, 3.5f), ElementsAre(0.75f, -2.0f));
}

TEST_P(ElementwiseTest, RmsNormAgreesWithDoublePrecision) {
  const auto row = RandomRow(577, 1);
  const auto weight = RandomRow(577, 2);
  double sum = 0;
  for (float x : row) sum += static_cast<double>(x) * x;
  const double root = std::sqrt(sum / 577.0 + 1e-5);

  const auto out = Norm(row, weight, 1e-5f);

  for (size_t i = 0; i < row.size(); ++i) {
    EXPECT_NEAR(out[i], row[i] / root * weight[i], 1e-6) << i;
  }
}

TEST_P(ElementwiseTest, ARowOfRmsNormHasTheSameBitsInAnyCompany) {
  constexpr size_t kWidth = 1000;
  const auto weight = RandomRow(kWidth, 3);
  const auto rows = RandomRow(40 * kWidth, 4);
  const auto together = Norm(rows, weight, 1e-6f);

  for (size_t r : {0u, 17u, 39u}) {
    const auto begin = static_cast<std::ptrdiff_t>(r * kWidth);
    const std::vector<float> row(rows.begin() + begin,
                                 rows.begin() + begin + kWidth);
    const auto alone = Norm(row, weight, 1e-6f);
    EXPECT_EQ(Bits(alone),
              Bits(std::span(together).subspan(r * kWidth, kWidth)));
  }
}

TEST_P(ElementwiseTest, SiluAgreesWithDoublePrecision) {
  auto gates = RandomRow(3000, 5);
  for (size_t i = 0; i < gates.size(); ++i) {
    gates[i] *= 0.01f * static_cast<float>(i);  // up to +-120
  }
  gates[0] = 0.0f;
  const auto ups = RandomRow(3000, 6);

  const auto out = Silu(gates, ups);

  for (size_t i = 0; i < gates.size(); ++i) {
    const double g = gates[i];
    const double expected = g / (1.0 + std::exp(-g)) * ups[i];
    EXPECT_NEAR(out[i], expected, 5e-7 * std::fabs(expected) + 1e-34)
        << "silu(" << g << ") * " << ups[i];
  }
}

TEST_P(ElementwiseTest, SiluKeepsNanAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();

  const auto out = Silu({nan, infinity}, {1, 2});

  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], infinity);
}

TEST_P(ElementwiseTest, AnElementOfSiluHasTheSameBitsAtAnyOffset) {
  const auto gates = RandomRow(50001, 7);
  const auto ups = RandomRow(50001, 8);
  const auto together = Silu(gates, ups);

  for (size_t i : {0u, 1u, 15u, 16u, 16383u, 16384u, 33333u, 50000u}) {
    EXPECT_EQ(Bits(Silu({gates[i]}, {ups[i]})),
              Bits(std::span(together).subspan(i, 1)))
        << i;
  }
}

TEST_P(ElementwiseTest, RopePairsAnElementWithTheOneHalfAHeadAway) {
  // A quarter turn maps (a, b) to (-b, a); pairs are (0, 2) and (1, 3). The
  // second frequency is 0, so its pair stays.
  const auto out = Rotated({1, 2, 3, 4, 5, 6, 7, 8}, {1},
                           {std::numbers::pi / 2, 0.0}, /*num_heads=*/2);

  EXPECT_THAT(out, ElementsAreArray({FloatNear(-3, 1e-6f), FloatNear(2, 0),
                                     FloatNear(1, 1e-6f), FloatNear(4, 0),
                                     FloatNear(-7, 1e-6f), FloatNear(6, 0),
                                     FloatNear(5, 1e-6f), FloatNear(8, 0)}));
}

TEST_P(ElementwiseTest, RopeIsExactAtFarPositions) {
  const double frequency = 0.7;
  const int64_t position = 1000003;
  const double angle = frequency * static_cast<double>(position);

  const auto out = Rotated({1, 0}, {position}, {frequency}, 1);

  EXPECT_FLOAT_EQ(out[0], static_cast<float>(std::cos(angle)));
  EXPECT_FLOAT_EQ(out[1], static_cast<float>(std::sin(angle)));
}

TEST_P(ElementwiseTest, EachRowOfRopeTurnsByItsOwnPosition) {
  const std::vector<double> frequencies = {1.0, 0.1, 0.01, 0.001};
  const auto heads = RandomRow(3 * 16, 9);
  const auto together = Rotated(heads, {0, 70, 5000}, frequencies, 2);

  EXPECT_EQ(Bits(std::span(together).first(16)),
            Bits(std::span(heads).first(16)));
  const std::vector<float> last(heads.begin() + 32, heads.end());
  EXPECT_EQ(Bits(Rotated(last, {5000}, frequencies, 2)),
            Bits(std::span(together).last(16)));
  EXPECT_NE(Bits(Rotated(last, {70}, frequencies, 2)),
            Bits(std::span(together).last(16)));
}

TEST_P(ElementwiseTest, RopeFollowsAChangeOfFrequencies) {
  const auto heads = RandomRow(4, 10);
  const auto first = Rotated(heads, {9}, {0.5, 0.25}, 1);
  const auto second = Rotated(heads, {9}, {0.5, 0.125}, 1);

  EXPECT_EQ(first[0], second[0]);
  EXPECT_NE(first[1], second[1]);
}

TEST_P(ElementwiseTest, RowsMayTurnByFrequenciesOfTheirOwn) {
  const auto heads = RandomRow(2 * 8, 11);
  const std::span rows(heads);
  const std::vector<int64_t> positions = {9, 70};
  const std::vector<double> frequencies = {0.5, 0.25, 0.3, 0.125};
  DeviceBuffer buffer = Upload(heads);

  Rope(*stream_, Floats(buffer), positions, frequencies, 2, 4);

  const auto together = Download(buffer);
  EXPECT_EQ(
      Bits(std::span(together).first(8)),
      Bits(Rotated({rows.begin(), rows.begin() + 8}, {9}, {0.5, 0.25}, 2)));
  EXPECT_EQ(
      Bits(std::span(together).last(8)),
      Bits(Rotated({rows.begin() + 8, rows.end()}, {70}, {0.3, 0.125}, 2)));
}

TEST_P(ElementwiseTest, RopeMultipliesByTheAttentionFactor) {
  const std::vector<int64_t> positions = {1};
  const std::vector<double> frequencies = {std::numbers::pi / 2};
  DeviceBuffer buffer = Upload<float>({1, 2});

  Rope(*stream_, Floats(buffer), positions, frequencies, 1, 2, 1.5);

  EXPECT_THAT(Download(buffer),
              ElementsAre(FloatNear(-3, 1e-6f), FloatNear(1.5, 1e-6f)));
  EXPECT_THAT(Rotated({1, 2}, {1}, frequencies, 1),
              ElementsAre(FloatNear(-2, 1e-6f), FloatNear(1, 1e-6f)));
}

TEST_P(ElementwiseTest, AddBiasAddsToEveryRow) {
  DeviceBuffer x = Upload<float>({1, 2, 3, 4});
  DeviceBuffer bias = Upload<float>({10, 20});

  AddBias(*stream_, Floats(x), Floats(bias), 2, 2);

  EXPECT_THAT(Download(x), ElementsAre(11, 22, 13, 24));
}

TEST_P(ElementwiseTest, AddReachesEveryElementOfALongArray) {
  std::vector<float> ones(40001, 1.0f);
  DeviceBuffer x = Upload(ones);
  DeviceBuffer y = Upload(ones);

  Add(*stream_, Floats(x), Floats(y), 40001);

  EXPECT_EQ(Download(x), std::vector<float>(40001, 2.0f));
}

TEST_P(ElementwiseTest, EmbedWidensRowsOfEitherType) {
  for (WeightType type : {WeightType::kBf16, WeightType::kF32}) {
    EmbeddingTable table{type, 3, 2, DeviceBuffer()};
    const std::vector<float> f32 = {0, 1, 2, 3, 4, 5};
    std::vector<uint16_t> bf16;
    for (float x : f32) bf16.push_back(FloatToBf16(x));
    table.data = type == WeightType::kF32 ? Upload(f32) : Upload(bf16);
    DeviceBuffer out = device_->Allocate(6 * sizeof(float)).value();
    std::vector<int32_t> tokens = {2, 0, 2};

    Embed(*stream_, table, tokens, Floats(out));
    tokens = {1, 1, 1};  // read before Embed returned

    EXPECT_THAT(Download(out), ElementsAre(4, 5, 0, 1, 4, 5));
  }
}

// Two heads of 16; row 0 goes to slot 1 and row 1 to slot 0 of a block of 2.
std::vector<RowTarget> CrossedTargets(const KvGeometry& geometry,
                                      std::byte* block) {
  std::vector<RowTarget> targets;
  for (size_t slot : {1u, 0u}) {
    targets.push_back({block + geometry.KeyOffset(2, 0, slot),
                       block + geometry.ValueOffset(2, 0, slot),
                       geometry.HeadStride(2)});
  }
  return targets;
}

TEST_P(ElementwiseTest, AppendRowsPlacesEachHeadInF32) {
  const KvGeometry geometry{1, 2, 16, DType::kF32};
  std::vector<float> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  DeviceBuffer keys = Upload(numbers);
  for (float& x : numbers) x += 100;
  DeviceBuffer values = Upload(numbers);
  DeviceBuffer block = device_->Allocate(geometry.BlockBytes(2)).value();
  auto targets = CrossedTargets(geometry, block.data());

  AppendRows(*stream_, geometry, Floats(keys), Floats(values), targets);
  targets.assign(2, RowTarget{});  // read before AppendRows returned

  // First elements of: head 0 keys of slots 0, 1, values of slots 0, 1, then
  // head 1. Row 1 starts at 32, its head 1 at 48.
  const auto out = Download(block);
  const float expected[] = {32, 0, 132, 100, 48, 16, 148, 116};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[16 * i], expected[i]) << i;
}

TEST_P(ElementwiseTest, AppendRowsRoundsToTheNearestBf16) {
  const KvGeometry geometry{1, 2, 16, DType::kBf16};
  const auto source = RandomRow(64, 11);
  DeviceBuffer keys = Upload(source);
  DeviceBuffer block = device_->Allocate(geometry.BlockBytes(2)).value();

  AppendRows(*stream_, geometry, Floats(keys), Floats(keys),
             CrossedTargets(geometry, block.data()));

  const auto out = Download<uint16_t>(block);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], FloatToBf16(source[32 + i]));       // slot 0, key
    EXPECT_EQ(out[16 + i], FloatToBf16(source[i]));       // slot 1, key
    EXPECT_EQ(out[32 + i], FloatToBf16(source[32 + i]));  // slot 0, value
  }
}

TEST_P(ElementwiseTest, CopyPiecesCopiesEachPiece) {
  std::vector<int32_t> numbers(30000);
  std::iota(numbers.begin(), numbers.end(), 0);
  DeviceBuffer from = Upload(numbers);
  DeviceBuffer to = device_->Allocate(from.size()).value();
  std::vector<CopyPiece> pieces;
  for (size_t i = 0; i < 300; ++i) {  // the pieces in reverse order
    pieces.push_back({to.data() + i * 400, from.data() + (299 - i) * 400, 400});
  }
  pieces.push_back({nullptr, nullptr, 0});

  CopyPieces(*stream_, pieces);
  pieces.clear();  // read before CopyPieces returned

  const auto out = Download<int32_t>(to);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], static_cast<int32_t>((299 - i / 100) * 100 + i % 100));
  }
}

TEST_P(ElementwiseTest, NoRowsAreNoError) {
  RmsNorm(*stream_, nullptr, nullptr, 1e-5f, 0, 16, nullptr);
  Rope(*stream_, nullptr, {}, std::vector<double>{1.0}, 2, 2);
  SiluMultiply(*stream_, nullptr, nullptr, 0, nullptr);
  Embed(*stream_, EmbeddingTable{}, {}, nullptr);
  AppendRows(*stream_, KvGeometry{1, 1, 16, DType::kF32}, nullptr, nullptr, {});
  CopyPieces(*stream_, {});
  stream_->Synchronize();
}

}  // namespace
}  // namespace farkv

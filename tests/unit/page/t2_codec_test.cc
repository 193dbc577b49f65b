#include "common/page/t2_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/half.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr KvGeometry kF32{
    .num_layers = 1, .num_kv_heads = 1, .head_dim = 64, .dtype = DType::kF32};
constexpr KvGeometry kBf16{
    .num_layers = 1, .num_kv_heads = 1, .head_dim = 80, .dtype = DType::kBf16};
constexpr uint64_t kAll = ~uint64_t{0};

// One head's rows as numbers, and as a T1 page has them.
class Rows {
 public:
  Rows(const KvGeometry& geometry, uint64_t seed)
      : geometry_(geometry),
        dim_(static_cast<size_t>(geometry.head_dim)),
        values_(2 * 64 * dim_) {
    for (size_t i = 0; i < values_.size(); ++i) {
      // Channels differ in offset, as real keys do.
      values_[i] =
          static_cast<float>(4 * (2 * ToUnit(SplitMix64At(seed, i)) - 1) +
                             20 * std::sin(static_cast<double>(i % dim_)));
      if (geometry.dtype == DType::kBf16) {
        values_[i] = Bf16ToFloat(FloatToBf16(values_[i]));
      }
    }
  }
  float& key(size_t slot, size_t i) { return values_[slot * dim_ + i]; }
  float& value(size_t slot, size_t i) {
    return values_[(64 + slot) * dim_ + i];
  }
  T1Head head() {
    bytes_.resize(2 * 64 * geometry_.VectorBytes());
    for (size_t i = 0; i < values_.size(); ++i) {
      if (geometry_.dtype == DType::kBf16) {
        StoreLe(bytes_.data() + 2 * i, FloatToBf16(values_[i]));
      } else {
        StoreLe(bytes_.data() + 4 * i, std::bit_cast<uint32_t>(values_[i]));
      }
    }
    return {bytes_.data(), bytes_.data() + 64 * geometry_.VectorBytes()};
  }

 private:
  const KvGeometry geometry_;
  const size_t dim_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

std::vector<float> Numbers(const KvGeometry& geometry,
                           const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / geometry.ElementBytes());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] =
        geometry.dtype == DType::kBf16
            ? Bf16ToFloat(LoadLe<uint16_t>(bytes.data() + 2 * i))
            : std::bit_cast<float>(LoadLe<uint32_t>(bytes.data() + 4 * i));
  }
  return numbers;
}

struct Decoded {
  std::vector<float> keys, values;  // [rows][dim]
};

Decoded Decode(const KvGeometry& geometry, int bits,
               const std::vector<std::byte>& part, uint64_t slots) {
  const auto rows = static_cast<size_t>(std::popcount(slots));
  std::vector<std::byte> keys(rows * geometry.VectorBytes());
  std::vector<std::byte> values(keys.size());
  const absl::Status status =
      DecodeT2Head(geometry, bits, part, slots, keys.data(), values.data());
  EXPECT_TRUE(status.ok()) << status;
  return {Numbers(geometry, keys), Numbers(geometry, values)};
}

std::vector<std::byte> Encode(const KvGeometry& geometry, int bits, Rows& rows,
                              uint64_t live, uint64_t exceptions) {
  std::vector<std::byte> part(T2HeadLayout::Of(geometry, bits).head_bytes,
                              std::byte{0xee});
  const absl::Status status =
      EncodeT2Head(geometry, bits, rows.head(), live, exceptions, part);
  EXPECT_TRUE(status.ok()) << status;
  return part;
}

TEST(HalfTest, DirectedRoundingBracketsEveryNumber) {
  for (uint32_t half = 0; half <= 0x7bffu; ++half) {
    for (const uint32_t sign : {0u, 0x8000u}) {
      const auto bits = static_cast<uint16_t>(half | sign);
      const float exact = HalfToFloat(bits);
      EXPECT_EQ(HalfToFloat(FloatToHalfUp(exact)), exact);
      EXPECT_EQ(HalfToFloat(FloatToHalfDown(exact)), exact);
      const float above = std::nextafterf(exact, 1e9f);
      if (above > kMaxHalf || exact < -kMaxHalf) continue;
      EXPECT_EQ(HalfToFloat(FloatToHalfDown(above)), exact);
      EXPECT_GT(HalfToFloat(FloatToHalfUp(above)), exact);
    }
  }
}

TEST(T2CodecTest, TheFixturesRowsAtFourBitsHaveItsCodes) {
  KvGeometry geometry = kF32;
  geometry.head_dim = 16;
  Rows rows(geometry, 1);
  // Four channels of the fixture, repeated: ranges and codes stay the same.
  const float narrow[4] = {0.2f, -0.1f, 0.3f, 0.05f};
  const float wide[4] = {6.0f, -6.0f, 0.4f, -0.3f};
  for (size_t i = 0; i < 16; ++i) {
    rows.value(0, i) = narrow[i % 4];
    rows.value(1, i) = wide[i % 4];
  }

  const auto part = Encode(geometry, 4, rows, 0b11, 0);
  const Decoded decoded = Decode(geometry, 4, part, 0b11);

  const std::byte* codes =
      part.data() + T2HeadLayout::Of(geometry, 4).value_codes;
  const auto code = [codes](size_t i) {
    return std::to_integer<int>(codes[i / 2]) >> (i % 2 * 4) & 15;
  };
  for (const auto& [first, expected] :
       {std::pair{size_t{0}, std::vector<int>{11, 0, 15, 6}},
        std::pair{size_t{16}, std::vector<int>{15, 0, 8, 7}}}) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(code(first + i), expected[i]) << first << " " << i;
    }
  }
  const float back[2][4] = {{.1933f, -.1f, .3f, .06f}, {6, -6, .4f, -.4f}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(decoded.values[i], back[0][i], 3e-4);
    EXPECT_NEAR(decoded.values[16 + i], back[1][i], 1e-2);
  }
  // ALGORITHMS 11.3, up to the fp16 of scale and minimum.
  const auto error = [&](size_t row) {
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) {
      sum += std::pow(decoded.values[16 * row + i] - rows.value(row, i), 2.0);
    }
    return sum / 4;
  };
  EXPECT_NEAR(error(0), 3.6e-5, 1e-6);
  EXPECT_NEAR(error(1), 2.5e-3, 1.25e-4);
}

// ALGORITHMS 11.1's toy as keys and as values: keys are rounded by channel,
// values by token. Scale and minimum are fp16 here.
TEST(T2CodecTest, TheToysErrorsByChannelAndByToken) {
  const float toy[4][3] = {
      {.1f, -.2f, 10}, {.2f, .1f, 10.4f}, {-.1f, .3f, 9.8f}, {0, -.1f, 10.2f}};
  KvGeometry geometry = kF32;
  geometry.head_dim = 48;
  Rows rows(geometry, 1);
  for (size_t slot = 0; slot < 4; ++slot) {
    for (size_t i = 0; i < 48; ++i) {
      rows.key(slot, i) = rows.value(slot, i) = toy[slot][i % 3];
    }
  }
  for (const auto& [bits, by_token] :
       {std::pair{4, .0148}, std::pair{8, .00010641}}) {
    const Decoded decoded =
        Decode(geometry, bits, Encode(geometry, bits, rows, 0b1111, 0), 0b1111);
    double keys = 0, values = 0;
    for (size_t i = 0; i < size_t{4} * 48; ++i) {
      const float exact = toy[i / 48][i % 3];
      keys += std::pow(decoded.keys[i] - exact, 2.0) / (4 * 48);
      values += std::pow(decoded.values[i] - exact, 2.0) / (4 * 48);
    }
    EXPECT_NEAR(values, by_token, by_token / 16) << bits;
    EXPECT_LT(keys, by_token / 100) << bits;
  }
}

class T2RoundTripTest
    : public ::testing::TestWithParam<std::tuple<KvGeometry, int>> {};

TEST_P(T2RoundTripTest, ErrorsStayWithinHalfAStepOfTheirGroup) {
  const auto& [geometry, bits] = GetParam();
  const auto dim = static_cast<size_t>(geometry.head_dim);
  Rows rows(geometry, 2);
  const auto part = Encode(geometry, bits, rows, kAll, 0);
  const Decoded decoded = Decode(geometry, bits, part, kAll);

  const double levels = (1 << bits) - 1;
  // fp16 of scale and minimum, and one rounding to the KV dtype.
  const double slack = geometry.dtype == DType::kBf16 ? 0.11 : 0.02;
  for (size_t i = 0; i < dim; ++i) {
    float low = 1e9f, high = -1e9f;
    for (size_t slot = 0; slot < 64; ++slot) {
      low = std::min(low, rows.key(slot, i));
      high = std::max(high, rows.key(slot, i));
    }
    for (size_t slot = 0; slot < 64; ++slot) {
      EXPECT_NEAR(decoded.keys[slot * dim + i], rows.key(slot, i),
                  (high - low) / levels / 2 + slack);
    }
  }
  for (size_t slot = 0; slot < 64; ++slot) {
    for (size_t first = 0; first < dim; first += 32) {
      float low = 1e9f, high = -1e9f;
      for (size_t i = first; i < std::min(first + 32, dim); ++i) {
        low = std::min(low, rows.value(slot, i));
        high = std::max(high, rows.value(slot, i));
      }
      for (size_t i = first; i < std::min(first + 32, dim); ++i) {
        EXPECT_NEAR(decoded.values[slot * dim + i], rows.value(slot, i),
                    (high - low) / levels / 2 + slack);
      }
    }
  }
}

TEST_P(T2RoundTripTest, ExceptionsComeBackBitForBitAndDoNotWidenTheirGroups) {
  const auto& [geometry, bits] = GetParam();
  const auto dim = static_cast<size_t>(geometry.head_dim);
  Rows plain(geometry, 3);
  Rows outlier(geometry, 3);
  for (size_t i = 0; i < dim; ++i) {
    outlier.key(5, i) = 3072;
    outlier.value(5, i) = i % 2 == 0 ? -3072.0f : 3072.0f;
  }
  const uint64_t exceptions = uint64_t{1} << 5 | uint64_t{1} << 63;

  const Decoded expected = Decode(
      geometry, bits, Encode(geometry, bits, plain, kAll, exceptions), kAll);
  const Decoded decoded = Decode(
      geometry, bits, Encode(geometry, bits, outlier, kAll, exceptions), kAll);

  for (size_t slot = 0; slot < 64; ++slot) {
    for (size_t i = 0; i < dim; ++i) {
      const bool kept = slot == 5 || slot == 63;
      EXPECT_EQ(decoded.keys[slot * dim + i],
                kept ? outlier.key(slot, i) : expected.keys[slot * dim + i]);
      EXPECT_EQ(
          decoded.values[slot * dim + i],
          kept ? outlier.value(slot, i) : expected.values[slot * dim + i]);
    }
  }
}

TEST_P(T2RoundTripTest, SomeRowsDecodeAsAmongAll) {
  const auto& [geometry, bits] = GetParam();
  const auto dim = static_cast<size_t>(geometry.head_dim);
  Rows rows(geometry, 4);
  const uint64_t live = 0xf0f0f0f0f0f0f0ffu;
  const auto part = Encode(geometry, bits, rows, live, 0b1);
  const Decoded all = Decode(geometry, bits, part, live);
  const uint64_t some = live & 0xaaaaaaaaaaaaaaaau;

  const Decoded found = Decode(geometry, bits, part, some);

  size_t at = 0, next = 0;
  for (size_t slot = 0; slot < 64; ++slot) {
    if ((live >> slot & 1) == 0) continue;
    if ((some >> slot & 1) != 0) {
      EXPECT_TRUE(std::equal(
          found.keys.begin() + static_cast<ptrdiff_t>(next * dim),
          found.keys.begin() + static_cast<ptrdiff_t>((next + 1) * dim),
          all.keys.begin() + static_cast<ptrdiff_t>(at * dim)));
      ++next;
    }
    ++at;
  }
  EXPECT_EQ(next * dim, found.keys.size());
}

INSTANTIATE_TEST_SUITE_P(, T2RoundTripTest,
                         ::testing::Combine(::testing::Values(kF32, kBf16),
                                            ::testing::Values(8, 4)));

TEST(T2CodecTest, DeadRowsAreNotReadAndEveryByteIsWritten) {
  Rows rows(kF32, 5);
  for (size_t i = 0; i < 64; ++i) rows.key(7, i) = std::nanf("");
  const uint64_t live = kAll & ~(uint64_t{1} << 7);

  const auto part = Encode(kF32, 8, rows, live, 0);
  Rows other(kF32, 5);
  const auto same = Encode(kF32, 8, other, live, 0);

  EXPECT_EQ(part, same);
}

TEST(T2CodecTest, WhatCannotBeCodedIsNamedUnlessItIsAnException) {
  Rows rows(kF32, 6);
  rows.value(9, 3) = 70000.0f;
  std::vector<std::byte> part(T2HeadLayout::Of(kF32, 8).head_bytes);

  const absl::Status status = EncodeT2Head(kF32, 8, rows.head(), kAll, 0, part);
  const absl::Status kept =
      EncodeT2Head(kF32, 8, rows.head(), kAll, uint64_t{1} << 9, part);

  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("value of slot 9, channel 3 is 70000"));
  EXPECT_TRUE(kept.ok()) << kept;
}

TEST(T2CodecTest, ExceptionsAreSinksAndTheWidestValues) {
  Rows rows(kF32, 7);
  rows.value(40, 0) = 500.0f;
  rows.value(12, 0) = 400.0f;
  rows.value(3, 0) = 300.0f;
  rows.value(50, 0) = std::nanf("");

  const uint64_t chosen =
      ChooseT2Exceptions(kF32, rows.head(), kAll & ~(uint64_t{1} << 50), 0b11);

  EXPECT_EQ(chosen, 0b11 | uint64_t{1} << 40 | uint64_t{1} << 12);
  // With the NaN alive it is kept first of all.
  EXPECT_EQ(ChooseT2Exceptions(kF32, rows.head(), kAll, 0),
            uint64_t{1} << 50 | uint64_t{1} << 40);
  // Sinks never take more than the exception slots.
  EXPECT_EQ(ChooseT2Exceptions(kF32, rows.head(), kAll, 0xfff), 0xffu);
}

TEST(T2CodecTest, DamagedExceptionTablesAreDataLoss) {
  Rows rows(kF32, 8);
  auto part = Encode(kF32, 8, rows, kAll, 0b11);
  std::vector<std::byte> keys(64 * kF32.VectorBytes()), values(keys.size());
  const size_t table = T2HeadLayout::Of(kF32, 8).exception_slots;

  part[table + 2] = std::byte{64};
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeT2Head(kF32, 8, part, kAll, keys.data(), values.data())));
  part[table + 2] = std::byte{1};
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeT2Head(kF32, 8, part, kAll, keys.data(), values.data())));
}

}  // namespace
}  // namespace farkv

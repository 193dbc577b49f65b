// Decoding against the formula of page_format.h, number by number.
#include <bit>
#include <cstring>
#include <vector>

#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/half.h"
#include "common/base/random.h"
#include "common/page/page_format.h"
#include "common/page/t2_codec.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"

namespace farkv {
namespace {

// A head's part of random bytes, with no exceptions. Scales and minima are
// finite, as they are encoded: which NaN comes of a NaN is no promise.
std::vector<std::byte> RandomPart(const T2HeadLayout& layout) {
  std::vector<std::byte> part(layout.head_bytes);
  for (size_t i = 0; i < part.size(); ++i) {
    part[i] = static_cast<std::byte>(SplitMix64At(7, i));
    const bool upper_half = i < layout.key_codes && i % 2 == 1;
    if (upper_half) part[i] &= ~std::byte{0x40};  // below 2
  }
  std::memset(part.data() + layout.exception_slots, kT2NoSlot,
              kT2ExceptionSlots);
  return part;
}

std::vector<std::byte> Narrowed(DType dtype, float value) {
  std::vector<std::byte> bytes(dtype == DType::kBf16 ? 2 : 4);
  if (dtype == DType::kBf16) {
    StoreLe(bytes.data(), FloatToBf16(value));
  } else {
    StoreLe(bytes.data(), std::bit_cast<uint32_t>(value));
  }
  return bytes;
}

// The formula, one number at a time.
class Formula {
 public:
  Formula(const KvGeometry& geometry, int bits, const std::byte* part)
      : layout_(T2HeadLayout::Of(geometry, bits)),
        dim_(static_cast<size_t>(geometry.head_dim)),
        groups_((dim_ + kT2GroupChannels - 1) / kT2GroupChannels),
        bits_(bits),
        part_(part) {}

  float Key(size_t slot, size_t i) const {
    return Code(layout_.key_codes, slot * dim_ + i) *
               Half(layout_.key_scale, i) +
           Half(layout_.key_minimum, i);
  }
  float Value(size_t slot, size_t i) const {
    const size_t group = slot * groups_ + i / kT2GroupChannels;
    return Code(layout_.value_codes, slot * dim_ + i) *
               Half(layout_.value_scale, group) +
           Half(layout_.value_minimum, group);
  }

 private:
  float Half(size_t table, size_t index) const {
    return HalfToFloat(LoadLe<uint16_t>(part_ + table + 2 * index));
  }
  float Code(size_t table, size_t index) const {
    const auto byte = std::to_integer<unsigned>(
        part_[table + index * static_cast<size_t>(bits_) / 8]);
    return static_cast<float>(bits_ == 8       ? byte
                              : index % 2 == 0 ? byte & 15
                                               : byte >> 4);
  }

  const T2HeadLayout layout_;
  const size_t dim_;
  const size_t groups_;
  const int bits_;
  const std::byte* const part_;
};

TEST(T2DecodeTest, EveryTargetGivesTheFormulasBits) {
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    for (const int bits : {8, 4}) {
      const KvGeometry geometry{
          .num_layers = 1, .num_kv_heads = 1, .head_dim = 80, .dtype = dtype};
      const std::vector<std::byte> part =
          RandomPart(T2HeadLayout::Of(geometry, bits));
      const Formula formula(geometry, bits, part.data());
      std::vector<std::byte> keys, values;
      for (size_t slot = 0; slot < 64; ++slot) {
        for (size_t i = 0; i < 80; ++i) {
          const auto key = Narrowed(dtype, formula.Key(slot, i));
          const auto value = Narrowed(dtype, formula.Value(slot, i));
          keys.insert(keys.end(), key.begin(), key.end());
          values.insert(values.end(), value.begin(), value.end());
        }
      }
      ForEachHighwayTarget([&] {
        std::vector<std::byte> got_keys(keys.size()), got_values(values.size());
        ASSERT_TRUE(DecodeT2Head(geometry, bits, part, ~uint64_t{0},
                                 got_keys.data(), got_values.data())
                        .ok());
        EXPECT_TRUE(got_keys == keys) << DTypeName(dtype) << " " << bits;
        EXPECT_TRUE(got_values == values) << DTypeName(dtype) << " " << bits;
      });
    }
  }
}

}  // namespace
}  // namespace farkv

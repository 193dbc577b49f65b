// From codes back to rows. Each number is one product and one sum in fp32, then
// one rounding to the KV dtype, on every instruction set: no fused operation.
#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/half.h"
#include "common/base/status_macros.h"
#include "common/page/t2_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/page/t2_decode.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A head dimension is a multiple of 16, so no vector reaches over its end.
using FloatTag = hn::CappedTag<float, 16>;
using WordTag = hn::Rebind<uint32_t, FloatTag>;
using HalfTag = hn::Rebind<uint16_t, FloatTag>;
using ByteTag = hn::Rebind<uint8_t, FloatTag>;

// As FloatToBf16 (bf16.h).
HWY_INLINE hn::Vec<HalfTag> RoundToBf16(hn::Vec<FloatTag> value) {
  const WordTag w;
  const auto bits = hn::BitCast(w, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(w, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(w, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(w, 0x400000));
  const auto nan = hn::RebindMask(w, hn::IsNaN(value));
  const auto high = hn::ShiftRight<16>(hn::IfThenElse(nan, quiet, rounded));
  return hn::TruncateTo(HalfTag(), high);
}

// out[i] = codes[i] * scale[i] + minimum[i]; `count` is a multiple of 16.
void Dequantise(const uint8_t* codes, const float* scale, const float* minimum,
                size_t count, bool bf16, std::byte* out) {
  const FloatTag d;
  const hn::Rebind<int32_t, FloatTag> i32;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < count; i += lanes) {
    const auto code =
        hn::ConvertTo(d, hn::PromoteTo(i32, hn::LoadU(ByteTag(), codes + i)));
    const auto value = hn::Add(hn::Mul(code, hn::LoadU(d, scale + i)),
                               hn::LoadU(d, minimum + i));
    if (bf16) {
      hn::StoreU(RoundToBf16(value), HalfTag(),
                 reinterpret_cast<uint16_t*>(out) + i);
    } else {
      hn::StoreU(value, d, reinterpret_cast<float*>(out) + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farkv {
namespace {

HWY_EXPORT(Dequantise);

constexpr size_t kMaxHeadDim = 512;

// Index of each slot among the exceptions, -1 for the others.
absl::Status FindExceptions(const std::byte* slots, int (&found)[kPageTokens]) {
  std::fill(std::begin(found), std::end(found), -1);
  for (int i = 0; i < kT2ExceptionSlots; ++i) {
    const auto slot = std::to_integer<uint8_t>(slots[i]);
    if (slot == kT2NoSlot) continue;
    if (slot >= kPageTokens || found[slot] >= 0) {
      return absl::DataLossError(absl::StrCat(
          "T2 exception ", i, " names slot ", static_cast<int>(slot),
          slot >= kPageTokens ? ", a page has 64" : " again"));
    }
    found[slot] = i;
  }
  return absl::OkStatus();
}

// Decodes the coded rows of one head; what rows share is read once.
class Decoder {
 public:
  Decoder(const KvGeometry& geometry, int bits, const std::byte* part)
      : layout_(T2HeadLayout::Of(geometry, bits)),
        bits_(bits),
        dim_(static_cast<size_t>(geometry.head_dim)),
        groups_((dim_ + kT2GroupChannels - 1) / kT2GroupChannels),
        bf16_(geometry.dtype == DType::kBf16),
        part_(part) {
    for (size_t i = 0; i < dim_; ++i) {
      key_scale_[i] = Half(layout_.key_scale, i);
      key_minimum_[i] = Half(layout_.key_minimum, i);
    }
  }

  void Key(size_t slot, std::byte* out) {
    Row(layout_.key_codes, slot, key_scale_, key_minimum_, out);
  }

  void Value(size_t slot, std::byte* out) {
    for (size_t group = 0; group < groups_; ++group) {
      const size_t first = group * kT2GroupChannels;
      const size_t count = std::min<size_t>(kT2GroupChannels, dim_ - first);
      std::fill_n(scale_ + first, count,
                  Half(layout_.value_scale, slot * groups_ + group));
      std::fill_n(minimum_ + first, count,
                  Half(layout_.value_minimum, slot * groups_ + group));
    }
    Row(layout_.value_codes, slot, scale_, minimum_, out);
  }

 private:
  float Half(size_t table, size_t index) const {
    return HalfToFloat(LoadLe<uint16_t>(part_ + table + index * 2));
  }

  void Row(size_t table, size_t slot, const float* scale, const float* minimum,
           std::byte* out) {
    const auto* codes = reinterpret_cast<const uint8_t*>(part_ + table) +
                        slot * dim_ * static_cast<size_t>(bits_) / 8;
    if (bits_ == 4) {
      for (size_t i = 0; i < dim_ / 2; ++i) {
        codes_[2 * i] = codes[i] & 15;
        codes_[2 * i + 1] = codes[i] >> 4;
      }
      codes = codes_;
    }
    HWY_DYNAMIC_DISPATCH(Dequantise)
    (codes, scale, minimum, dim_, bf16_, out);
  }

  const T2HeadLayout layout_;
  const int bits_;
  const size_t dim_;
  const size_t groups_;
  const bool bf16_;
  const std::byte* const part_;
  float key_scale_[kMaxHeadDim], key_minimum_[kMaxHeadDim];
  float scale_[kMaxHeadDim], minimum_[kMaxHeadDim];
  uint8_t codes_[kMaxHeadDim];
};

absl::Status CheckPart(const KvGeometry& geometry, const T2HeadLayout& layout,
                       size_t bytes) {
  if (static_cast<size_t>(geometry.head_dim) > kMaxHeadDim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head_dim is ", geometry.head_dim, ", at most ", kMaxHeadDim));
  }
  if (bytes == layout.head_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "T2 part of a head has ", bytes, " bytes, not ", layout.head_bytes));
}

}  // namespace

absl::Status CheckT2Exceptions(const KvGeometry& geometry, int bits,
                               std::span<const std::byte> part) {
  const T2HeadLayout layout = T2HeadLayout::Of(geometry, bits);
  FARKV_RETURN_IF_ERROR(CheckPart(geometry, layout, part.size()));
  int exception[kPageTokens];
  return FindExceptions(part.data() + layout.exception_slots, exception);
}

absl::Status DecodeT2Head(const KvGeometry& geometry, int bits,
                          std::span<const std::byte> part, uint64_t slots,
                          std::byte* keys, std::byte* values) {
  const T2HeadLayout layout = T2HeadLayout::Of(geometry, bits);
  FARKV_RETURN_IF_ERROR(CheckPart(geometry, layout, part.size()));
  int exception[kPageTokens];
  FARKV_RETURN_IF_ERROR(
      FindExceptions(part.data() + layout.exception_slots, exception));
  const size_t bytes = geometry.VectorBytes();
  Decoder decoder(geometry, bits, part.data());
  for (uint64_t left = slots; left != 0; left &= left - 1) {
    const auto slot = static_cast<size_t>(std::countr_zero(left));
    if (exception[slot] >= 0) {
      const std::byte* kept = part.data() + layout.exception_rows +
                              static_cast<size_t>(exception[slot]) * 2 * bytes;
      std::memcpy(keys, kept, bytes);
      std::memcpy(values, kept + bytes, bytes);
    } else {
      decoder.Key(slot, keys);
      decoder.Value(slot, values);
    }
    keys += bytes;
    values += bytes;
  }
  return absl::OkStatus();
}

}  // namespace farkv
#endif  // HWY_ONCE

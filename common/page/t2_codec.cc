#include "common/page/t2_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/half.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// 3 % of 64 rows, rounded up.
constexpr int kRangeExceptions = 2;

// The vectors of a head as floats, [64][dim]; dead slots are zero.
std::vector<float> Widen(const KvGeometry& geometry, const std::byte* vectors,
                         uint64_t live) {
  const auto dim = static_cast<size_t>(geometry.head_dim);
  std::vector<float> values(size_t{kPageTokens} * dim);
  for (uint64_t left = live; left != 0; left &= left - 1) {
    const auto slot = static_cast<size_t>(std::countr_zero(left));
    const std::byte* vector = vectors + slot * geometry.VectorBytes();
    float* out = values.data() + slot * dim;
    for (size_t i = 0; i < dim; ++i) {
      out[i] =
          geometry.dtype == DType::kBf16
              ? Bf16ToFloat(LoadLe<uint16_t>(vector + i * sizeof(uint16_t)))
              : std::bit_cast<float>(
                    LoadLe<uint32_t>(vector + i * sizeof(uint32_t)));
    }
  }
  return values;
}

// What one group of numbers is quantised with, as stored.
struct Step {
  uint16_t scale_half = 0;
  uint16_t minimum_half = 0;

  float scale() const { return HalfToFloat(scale_half); }
  float minimum() const { return HalfToFloat(minimum_half); }
};

// The minimum is rounded down and the scale up, so that no number of the group
// is outside of the codes. Of an empty group both are zero.
Step MakeStep(float low, float high, int bits) {
  Step step;
  if (low > high) return step;
  step.minimum_half = FloatToHalfDown(low);
  const float range = high - step.minimum();
  const float scale = range / static_cast<float>((1 << bits) - 1);
  step.scale_half =
      scale > kMaxHalf ? FloatToHalfTowardZero(kMaxHalf) : FloatToHalfUp(scale);
  return step;
}

uint32_t Quantise(float value, const Step& step, int bits) {
  const float scale = step.scale();
  if (scale == 0.0f) return 0;
  const float code = std::nearbyintf((value - step.minimum()) / scale);
  const auto top = static_cast<float>((1 << bits) - 1);
  return static_cast<uint32_t>(std::clamp(code, 0.0f, top));
}

void PutCode(std::byte* codes, size_t index, uint32_t code, int bits) {
  if (bits == 8) {
    codes[index] = static_cast<std::byte>(code);
  } else {
    codes[index / 2] |= static_cast<std::byte>(code << (index % 2 * 4));
  }
}

// Writes one head's part; the members are what every step of it needs.
class Encoder {
 public:
  Encoder(const KvGeometry& geometry, int bits, uint64_t live,
          uint64_t exceptions, std::byte* part)
      : geometry_(geometry),
        bits_(bits),
        layout_(T2HeadLayout::Of(geometry, bits)),
        dim_(static_cast<size_t>(geometry.head_dim)),
        coded_(live & ~exceptions),
        part_(part) {}

  absl::Status CheckRange(const char* what,
                          const std::vector<float>& values) const {
    for (uint64_t left = coded_; left != 0; left &= left - 1) {
      const auto slot = static_cast<size_t>(std::countr_zero(left));
      for (size_t i = 0; i < dim_; ++i) {
        const float value = values[slot * dim_ + i];
        if (std::abs(value) <= kMaxHalf) continue;
        return absl::OutOfRangeError(
            absl::StrCat(what, " of slot ", slot, ", channel ", i, " is ",
                         value, "; T2 takes numbers up to ", kMaxHalf));
      }
    }
    return absl::OkStatus();
  }

  void Keys(const std::vector<float>& keys) {
    for (size_t channel = 0; channel < dim_; ++channel) {
      float low = std::numeric_limits<float>::infinity();
      float high = -low;
      for (uint64_t left = coded_; left != 0; left &= left - 1) {
        const auto slot = static_cast<size_t>(std::countr_zero(left));
        low = std::min(low, keys[slot * dim_ + channel]);
        high = std::max(high, keys[slot * dim_ + channel]);
      }
      const Step step = MakeStep(low, high, bits_);
      PutStep(layout_.key_scale, layout_.key_minimum, channel, step);
      for (uint64_t left = coded_; left != 0; left &= left - 1) {
        const auto slot = static_cast<size_t>(std::countr_zero(left));
        const size_t at = slot * dim_ + channel;
        PutCode(part_ + layout_.key_codes, at, Quantise(keys[at], step, bits_),
                bits_);
      }
    }
  }

  void Values(const std::vector<float>& values) {
    const size_t groups = (dim_ + kT2GroupChannels - 1) / kT2GroupChannels;
    for (uint64_t left = coded_; left != 0; left &= left - 1) {
      const auto slot = static_cast<size_t>(std::countr_zero(left));
      for (size_t group = 0; group < groups; ++group) {
        const size_t first = slot * dim_ + group * kT2GroupChannels;
        const size_t count =
            std::min<size_t>(kT2GroupChannels, dim_ - group * kT2GroupChannels);
        const auto [low, high] = std::minmax_element(
            values.begin() + static_cast<ptrdiff_t>(first),
            values.begin() + static_cast<ptrdiff_t>(first + count));
        const Step step = MakeStep(*low, *high, bits_);
        PutStep(layout_.value_scale, layout_.value_minimum,
                slot * groups + group, step);
        for (size_t i = first; i < first + count; ++i) {
          PutCode(part_ + layout_.value_codes, i,
                  Quantise(values[i], step, bits_), bits_);
        }
      }
    }
  }

  void Exceptions(const T1Head& head, uint64_t exceptions) {
    const size_t bytes = geometry_.VectorBytes();
    std::byte* row = part_ + layout_.exception_rows;
    std::memset(part_ + layout_.exception_slots, kT2NoSlot, kT2ExceptionSlots);
    size_t next = 0;
    for (uint64_t left = exceptions; left != 0; left &= left - 1, ++next) {
      const auto slot = static_cast<size_t>(std::countr_zero(left));
      part_[layout_.exception_slots + next] = static_cast<std::byte>(slot);
      std::memcpy(row, head.keys + slot * bytes, bytes);
      std::memcpy(row + bytes, head.values + slot * bytes, bytes);
      row += 2 * bytes;
    }
  }

 private:
  void PutStep(size_t scales, size_t minima, size_t index, const Step& step) {
    StoreLe(part_ + scales + index * 2, step.scale_half);
    StoreLe(part_ + minima + index * 2, step.minimum_half);
  }

  const KvGeometry& geometry_;
  const int bits_;
  const T2HeadLayout layout_;
  const size_t dim_;
  const uint64_t coded_;
  std::byte* const part_;
};

absl::Status CheckPart(const T2HeadLayout& layout, size_t bytes) {
  if (bytes == layout.head_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "T2 part of a head has ", bytes, " bytes, not ", layout.head_bytes));
}

}  // namespace

uint64_t ChooseT2Exceptions(const KvGeometry& geometry, const T1Head& head,
                            uint64_t live, uint64_t sinks) {
  const auto dim = static_cast<ptrdiff_t>(geometry.head_dim);
  const std::vector<float> values = Widen(geometry, head.values, live);
  uint64_t chosen = live & sinks;
  while (std::popcount(chosen) > kT2ExceptionSlots) {
    chosen &= ~std::bit_floor(chosen);
  }
  for (int n = 0;
       n < kRangeExceptions && std::popcount(chosen) < kT2ExceptionSlots; ++n) {
    float widest = -1.0f;
    uint64_t best = 0;
    for (uint64_t left = live & ~chosen; left != 0; left &= left - 1) {
      const auto row = values.begin() + std::countr_zero(left) * dim;
      const auto [low, high] = std::minmax_element(row, row + dim);
      const float range = *high - *low;
      // A NaN or an infinity must be kept: it cannot be coded.
      if (std::isfinite(range) && range <= widest) continue;
      best = left & ~(left - 1);
      if (!std::isfinite(range)) break;
      widest = range;
    }
    chosen |= best;
  }
  return chosen;
}

absl::Status EncodeT2Head(const KvGeometry& geometry, int bits,
                          const T1Head& head, uint64_t live,
                          uint64_t exceptions, std::span<std::byte> part) {
  const T2HeadLayout layout = T2HeadLayout::Of(geometry, bits);
  FARKV_RETURN_IF_ERROR(CheckPart(layout, part.size()));
  if (std::popcount(exceptions) > kT2ExceptionSlots ||
      (exceptions & ~live) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "T2 exceptions 0x", absl::Hex(exceptions), " of live rows 0x",
        absl::Hex(live), "; at most ", kT2ExceptionSlots, " live ones"));
  }
  Encoder encoder(geometry, bits, live, exceptions, part.data());
  const std::vector<float> keys = Widen(geometry, head.keys, live);
  const std::vector<float> values = Widen(geometry, head.values, live);
  FARKV_RETURN_IF_ERROR(encoder.CheckRange("key", keys));
  FARKV_RETURN_IF_ERROR(encoder.CheckRange("value", values));
  std::memset(part.data(), 0, part.size());
  encoder.Keys(keys);
  encoder.Values(values);
  encoder.Exceptions(head, exceptions);
  return absl::OkStatus();
}

}  // namespace farkv

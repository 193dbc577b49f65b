// The exponential of attention weights, for arguments <= 0.
//
// Goal: the same bits in scalar code, under every Highway target
// (attention_exp-inl.h) and in intrinsics: one order of separate multiplies
// and adds, no fused multiply-add, no library call. Non-goal: arguments
// above 0.
//
// exp(0) is exactly 1; arguments below kMinArgument, -inf included, give +0
// (the true value is below 2^-125.5); NaN stays NaN. Relative error against the
// true value below 1e-7 (the unit test walks the whole range).
//
// Method: x = n ln2 + r with n = round(x / ln2), ln2 in two parts (Cody and
// Waite, 1980), exp(r) = 1 + r + r^2 q(r) with q of degree 4, times 2^n.
#ifndef FARKV_COMMON_ATTENTION_TREE_ATTENTION_EXP_H_
#define FARKV_COMMON_ATTENTION_TREE_ATTENTION_EXP_H_

#include <bit>
#include <cstdint>

namespace farkv {

struct AttentionExpConstants {
  static constexpr float kMinArgument = -87.0f;
  static constexpr float kLog2E = 0x1.715476p+0f;
  // Adding 1.5 * 2^23 leaves the nearest integer in the low mantissa bits.
  static constexpr float kRound = 0x1.8p+23f;
  static constexpr int32_t kRoundBits = 0x4b400000;
  // 15 bits, so that n * kLn2High is exact.
  static constexpr float kLn2High = 0x1.62e4p-1f;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  // q, lowest power first, fitted at Chebyshev nodes of |r| <= 0.35.
  static constexpr float kQ0 = 0.5f;
  static constexpr float kQ1 = 0x1.5554d8p-3f;
  static constexpr float kQ2 = 0x1.555516p-5f;
  static constexpr float kQ3 = 0x1.12106cp-7f;
  static constexpr float kQ4 = 0x1.6d1606p-10f;
  static constexpr int32_t kExponentBias = 127;
};

inline float AttentionExp(float x) {
  using C = AttentionExpConstants;
  if (x < C::kMinArgument) return 0.0f;
  const float shifted = x * C::kLog2E + C::kRound;
  const float n = shifted - C::kRound;
  const float r = (x - n * C::kLn2High) - n * C::kLn2Low;
  float q = C::kQ4 * r + C::kQ3;
  q = q * r + C::kQ2;
  q = q * r + C::kQ1;
  q = q * r + C::kQ0;
  const float y = (q * (r * r) + r) + 1.0f;
  const uint32_t exponent =
      std::bit_cast<uint32_t>(shifted) -
      static_cast<uint32_t>(C::kRoundBits - C::kExponentBias);
  return y * std::bit_cast<float>(exponent << 23);
}

}  // namespace farkv

#endif  // FARKV_COMMON_ATTENTION_TREE_ATTENTION_EXP_H_

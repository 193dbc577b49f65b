// AttentionExp on Highway vectors: the same operations in the same order as
// attention_exp.h. Included once per target, inside foreach_target.h.
#include "common/attention_tree/attention_exp.h"
#include "hwy/highway.h"

#if defined(FARKV_ATTENTION_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FARKV_ATTENTION_EXP_INL_H_
#undef FARKV_ATTENTION_EXP_INL_H_
#else
#define FARKV_ATTENTION_EXP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V AttentionExp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using C = AttentionExpConstants;
  const hn::RebindToUnsigned<D> bits;
  const V round = hn::Set(d, C::kRound);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, C::kLog2E)), round);
  const V n = hn::Sub(shifted, round);
  const V r = hn::Sub(hn::Sub(x, hn::Mul(n, hn::Set(d, C::kLn2High))),
                      hn::Mul(n, hn::Set(d, C::kLn2Low)));
  V q = hn::Add(hn::Mul(hn::Set(d, C::kQ4), r), hn::Set(d, C::kQ3));
  q = hn::Add(hn::Mul(q, r), hn::Set(d, C::kQ2));
  q = hn::Add(hn::Mul(q, r), hn::Set(d, C::kQ1));
  q = hn::Add(hn::Mul(q, r), hn::Set(d, C::kQ0));
  const V y = hn::Add(hn::Add(hn::Mul(q, hn::Mul(r, r)), r), hn::Set(d, 1.0f));
  const auto exponent = hn::Sub(
      hn::BitCast(bits, shifted),
      hn::Set(bits, static_cast<uint32_t>(C::kRoundBits - C::kExponentBias)));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, C::kMinArgument)),
                            hn::Mul(y, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#endif  // FARKV_ATTENTION_EXP_INL_H_

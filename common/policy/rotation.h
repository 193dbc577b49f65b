// Sine and cosine for turning keys. One order of separate double operations,
// no library call: the same bits everywhere. Absolute error below 1e-15 for
// |x| up to 2^20, growing with |x| beyond. Pure.
//
// Method: x = n pi/2 + r with pi/2 in three parts (Cody and Waite, 1980), the
// power series of both on |r| <= pi/4.
#ifndef FARKV_COMMON_POLICY_ROTATION_H_
#define FARKV_COMMON_POLICY_ROTATION_H_

#include <cstdint>

namespace farkv {

struct SineCosine {
  double sine;
  double cosine;
};

SineCosine SineAndCosine(double x);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_ROTATION_H_

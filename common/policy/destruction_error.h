// What destroying rows does to the output of one head at one step, exactly
// (ALGORITHMS 1.5). For oracles and benches: it needs the weights over all
// rows, which no running system has once they are gone. Pure.
//
// With a = the attention mass on the destroyed rows and v' their mean value by
// mass, the output moves by a / (1 - a) * (o - v'). The published bound of
// twice the destroyed mass times values is wrong and not offered.
#ifndef FARKV_COMMON_POLICY_DESTRUCTION_ERROR_H_
#define FARKV_COMMON_POLICY_DESTRUCTION_ERROR_H_

#include <cstdint>
#include <span>

#include "common/policy/head_vectors.h"

namespace farkv {

struct DestructionError {
  double mass = 0;   // a; 1 when nothing is left, then the rest is NaN
  double error = 0;  // |o' - o|
  double bound = 0;  // a * (|v'| + largest |v| kept), never below `error`
};

// `weights` are the attention weights of all rows and add up to 1; nonzero
// `destroyed` marks those that go. All three have one length.
DestructionError ErrorOfDestroying(std::span<const float> weights,
                                   const HeadVectors& values,
                                   std::span<const uint8_t> destroyed);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_DESTRUCTION_ERROR_H_

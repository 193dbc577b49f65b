// Counter-based randomness (splitmix64): a draw is a pure function of its
// coordinates, so it does not depend on batch, thread or machine
// (ALGORITHMS 0.3). Pure, thread-safe.
#ifndef FARKV_COMMON_BASE_RANDOM_H_
#define FARKV_COMMON_BASE_RANDOM_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace farkv {

inline uint64_t SplitMix64Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The n-th output (n from 0) of splitmix64 started at `state`.
inline uint64_t SplitMix64At(uint64_t state, uint64_t n) {
  return SplitMix64Mix(state + (n + 1) * 0x9e3779b97f4a7c15u);
}

// Folds coordinates (request, layer, head, event, position, lane, ...) into
// one 64-bit draw.
inline uint64_t CounterDraw(uint64_t seed,
                            std::initializer_list<uint64_t> coordinates) {
  uint64_t state = seed;
  for (uint64_t c : coordinates) state = SplitMix64At(state ^ c, 0);
  return SplitMix64At(state, 0);
}

// Maps a draw to (0, 1): ((x >> 11) + 0.5) * 2^-53. The largest draw would
// round to 1, so it takes the number below.
inline double ToUnit(uint64_t draw) {
  return std::min((static_cast<double>(draw >> 11) + 0.5) * 0x1.0p-53,
                  0x1.fffffffffffffp-1);
}

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_RANDOM_H_

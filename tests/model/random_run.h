// Seeds of model tests. A test runs a few fixed seeds; FARKV_TEST_SEED=n runs
// that one alone, which replays a failure from its printed seed.
#ifndef FARKV_TESTS_MODEL_RANDOM_RUN_H_
#define FARKV_TESTS_MODEL_RANDOM_RUN_H_

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "common/base/random.h"

namespace farkv {

inline std::vector<uint64_t> ModelSeeds() {
  if (const char* seed = std::getenv("FARKV_TEST_SEED"); seed != nullptr) {
    return {std::strtoull(seed, nullptr, 10)};
  }
  return {1, 2, 3, 4, 5, 6, 7, 8};
}

// A stream of draws that depends on the seed alone.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : seed_(seed) {}
  // In [0, bound), bound > 0.
  uint64_t Below(uint64_t bound) {
    return SplitMix64At(seed_, next_++) % bound;
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  const uint64_t seed_;
  uint64_t next_ = 0;
};

}  // namespace farkv

#endif  // FARKV_TESTS_MODEL_RANDOM_RUN_H_

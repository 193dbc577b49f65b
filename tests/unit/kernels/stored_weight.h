// Random weights in the stored group formats of GGUF files with their values
// in double, decoded here from the formats' description alone, for tests of
// everything that reads them.
#ifndef FARKV_TESTS_UNIT_KERNELS_STORED_WEIGHT_H_
#define FARKV_TESTS_UNIT_KERNELS_STORED_WEIGHT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/weight_type.h"

namespace farkv {

inline constexpr WeightType kQuantizedTypes[] = {
    WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ4_K,
    WeightType::kQ6_K};

struct StoredWeight {
  WeightType type = WeightType::kQ8_0;
  int32_t rows = 0;
  int32_t cols = 0;
  std::vector<std::byte> bytes;  // row-major groups
  std::vector<double> values;    // row-major elements
};

// Every bit of the integers is random; fp16 scales are up to 1 / 16 with
// either sign, now and then zero or subnormal.
StoredWeight RandomStoredWeight(WeightType type, int32_t rows, int32_t cols,
                                uint64_t seed);

// All bytes of the integers are `quants`, of the 8-bit part scales of kQ6_K
// `scales`; the fp16 scales are 1.
StoredWeight ConstantStoredWeight(WeightType type, int32_t rows, int32_t cols,
                                  uint8_t quants, uint8_t scales);

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_KERNELS_STORED_WEIGHT_H_

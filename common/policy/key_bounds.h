// Quest's metadata (arXiv 2406.10774, ALGORITHMS 9): per group of g positions
// of one layer and KV head, the smallest and largest of each key element, from
// which follows an upper bound of every logit in the group. Thread-compatible.
//
// 2 * dim numbers per group; of absolute, rotated keys, so that a full group's
// bounds never change and may lie where its rows do not.
#ifndef FARKV_COMMON_POLICY_KEY_BOUNDS_H_
#define FARKV_COMMON_POLICY_KEY_BOUNDS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/policy/head_vectors.h"

namespace farkv {

class KeyBounds {
 public:
  KeyBounds(int32_t dim, int32_t group_tokens);

  // Takes the rotated key of one position into its group's bounds. In any
  // order; every position once. An element that is NaN stays in the bounds for
  // good, so that its group is always read.
  void Add(int64_t position, std::span<const float> key);

  int32_t dim() const { return dim_; }
  // Groups up to the last position added; those without one are empty.
  int64_t num_groups() const { return static_cast<int64_t>(rows_.size()); }
  int32_t rows(int64_t group) const {
    return rows_[static_cast<size_t>(group)];
  }
  float low(int64_t group, int32_t element) const;
  float high(int64_t group, int32_t element) const;

  // U per group: sum over elements c, ascending, of max(q[c] high[c], q[c]
  // low[c]), no less than the largest q * key; -inf for an empty group. fp32
  // with one order of operations: the same bits everywhere, and the bound holds
  // up to the rounding of two such sums.
  std::vector<float> UpperBounds(std::span<const float> query) const;

 private:
  size_t Index(int64_t group, int32_t element) const;
  void Grow(int64_t num_groups);

  int32_t dim_;
  int32_t group_tokens_;
  // A panel row is a group.
  HeadPanels low_;
  HeadPanels high_;
  std::vector<int32_t> rows_;
};

// The nearest bf16 that is not above (not below) a finite value: bounds stored
// in bf16 must err outwards.
uint16_t Bf16Below(float value);
uint16_t Bf16Above(float value);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_KEY_BOUNDS_H_

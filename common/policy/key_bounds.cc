#include "common/policy/key_bounds.h"

#include <cmath>
#include <limits>

#include "common/base/bf16.h"
#include "common/policy/panel_math.h"

namespace farkv {

KeyBounds::KeyBounds(int32_t dim, int32_t group_tokens)
    : dim_(dim), group_tokens_(group_tokens) {
  low_.dim = dim;
  high_.dim = dim;
}

size_t KeyBounds::Index(int64_t group, int32_t element) const {
  const int64_t panel = group / HeadPanels::kRows;
  return static_cast<size_t>((panel * dim_ + element) * HeadPanels::kRows +
                             group % HeadPanels::kRows);
}

float KeyBounds::low(int64_t group, int32_t element) const {
  return low_.data[Index(group, element)];
}

float KeyBounds::high(int64_t group, int32_t element) const {
  return high_.data[Index(group, element)];
}

void KeyBounds::Grow(int64_t num_groups) {
  rows_.resize(static_cast<size_t>(num_groups));
  low_.count = num_groups;
  high_.count = num_groups;
  const auto elements = static_cast<size_t>(low_.padded() * dim_);
  low_.data.resize(elements);
  high_.data.resize(elements);
}

void KeyBounds::Add(int64_t position, std::span<const float> key) {
  const int64_t group = position / group_tokens_;
  if (group >= num_groups()) Grow(group + 1);
  const bool first = rows_[static_cast<size_t>(group)]++ == 0;
  for (int32_t c = 0; c < dim_; ++c) {
    const float x = key[static_cast<size_t>(c)];
    float& low = low_.data[Index(group, c)];
    float& high = high_.data[Index(group, c)];
    if (first || x < low || std::isnan(x)) low = x;
    if (first || x > high || std::isnan(x)) high = x;
  }
}

std::vector<float> KeyBounds::UpperBounds(std::span<const float> query) const {
  std::vector<float> bounds = SumsOfLarger(query.data(), low_, high_);
  bounds.resize(rows_.size());
  for (size_t group = 0; group < bounds.size(); ++group) {
    if (rows_[group] == 0) {
      bounds[group] = -std::numeric_limits<float>::infinity();
    }
  }
  return bounds;
}

uint16_t Bf16Below(float value) {
  const uint16_t nearest = FloatToBf16(value);
  if (Bf16ToFloat(nearest) <= value) return nearest;
  // One step down: away from zero below it, toward it above. The step below +0
  // cannot be needed, since zero is exact.
  return static_cast<uint16_t>(nearest & 0x8000u ? nearest + 1 : nearest - 1);
}

uint16_t Bf16Above(float value) {
  return static_cast<uint16_t>(Bf16Below(-value) ^ 0x8000u);
}

}  // namespace farkv

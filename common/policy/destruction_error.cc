#include "common/policy/destruction_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace farkv {
namespace {

double Length(std::span<const double> x) {
  double square = 0;
  for (const double element : x) square += element * element;
  return std::sqrt(square);
}

}  // namespace

DestructionError ErrorOfDestroying(std::span<const float> weights,
                                   const HeadVectors& values,
                                   std::span<const uint8_t> destroyed) {
  const auto dim = static_cast<size_t>(values.dim);
  std::vector<double> output(dim), gone(dim), value(dim);
  std::vector<float> row(dim);
  DestructionError result;
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    ReadRow(values, static_cast<int64_t>(i), row.data());
    for (size_t c = 0; c < dim; ++c) {
      value[c] = row[c];
      output[c] += weights[i] * value[c];
      if (destroyed[i] != 0) gone[c] += weights[i] * value[c];
    }
    if (destroyed[i] != 0) {
      result.mass += weights[i];
    } else {
      largest = std::max(largest, Length(value));
    }
  }
  if (result.mass == 0) return result;
  std::vector<double> distance(dim);
  for (size_t c = 0; c < dim; ++c) {
    gone[c] /= result.mass;
    distance[c] = output[c] - gone[c];
  }
  result.error = result.mass / (1 - result.mass) * Length(distance);
  result.bound = result.mass * (Length(gone) + largest);
  return result;
}

}  // namespace farkv

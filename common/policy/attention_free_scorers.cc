#include "common/policy/attention_free_scorers.h"

#include <cmath>

#include "common/policy/panel_math.h"

namespace farkv {
namespace {

float At(const HeadPanels& panels, int64_t row, int32_t element) {
  return panels.panel(
      row /
      HeadPanels::kRows)[element * HeadPanels::kRows + row % HeadPanels::kRows];
}

std::vector<float> Norms(const HeadPanels& panels) {
  std::vector<float> norms = SquaredNorms(panels);
  norms.resize(static_cast<size_t>(panels.count));
  for (float& norm : norms) norm = std::sqrt(norm);
  return norms;
}

std::vector<float> MeanUnitKey(const HeadPanels& keys,
                               std::span<const float> norms) {
  std::vector<double> sums(static_cast<size_t>(keys.dim));
  int64_t count = 0;
  for (size_t i = 0; i < norms.size(); ++i) {
    if (!std::isfinite(norms[i]) || norms[i] == 0) continue;
    ++count;
    for (int32_t c = 0; c < keys.dim; ++c) {
      sums[static_cast<size_t>(c)] +=
          At(keys, static_cast<int64_t>(i), c) / norms[i];
    }
  }
  std::vector<float> mean;
  for (const double sum : sums) {
    mean.push_back(static_cast<float>(sum / static_cast<double>(count)));
  }
  return mean;
}

// k_i^T covariance k_i for every row.
std::vector<float> QuadraticForms(const float* covariance,
                                  const HeadPanels& keys) {
  const auto stride = static_cast<size_t>(keys.padded());
  std::vector<float> products(static_cast<size_t>(keys.dim) * stride);
  MultiplyPanels(covariance, keys.dim, keys, products.data());
  std::vector<float> forms(static_cast<size_t>(keys.count));
  for (size_t i = 0; i < forms.size(); ++i) {
    for (int32_t c = 0; c < keys.dim; ++c) {
      forms[i] = forms[i] + At(keys, static_cast<int64_t>(i), c) *
                                products[static_cast<size_t>(c) * stride + i];
    }
  }
  return forms;
}

}  // namespace

std::vector<float> KeyDiffScores(const HeadPanels& keys) {
  const std::vector<float> norms = Norms(keys);
  const std::vector<float> mean = MeanUnitKey(keys, norms);
  float square = 0;
  for (const float x : mean) square = square + x * x;
  const float length = std::sqrt(square);
  std::vector<float> scores(static_cast<size_t>(keys.padded()));
  MultiplyPanels(mean.data(), 1, keys, scores.data());
  scores.resize(norms.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = -(scores[i] / (norms[i] * length));
  }
  return scores;
}

std::vector<float> ExpectedAttention(const QueryMoments& queries,
                                     const HeadPanels& keys) {
  const auto dim = static_cast<size_t>(keys.dim);
  const auto d = static_cast<float>(keys.dim);
  const float root = std::sqrt(d);
  std::vector<float> mass(static_cast<size_t>(keys.count));
  std::vector<float> logits(static_cast<size_t>(keys.padded()));
  for (size_t head = 0; head < static_cast<size_t>(queries.num_heads); ++head) {
    MultiplyPanels(queries.mean.data() + head * dim, 1, keys, logits.data());
    const std::vector<float> forms =
        QuadraticForms(queries.covariance.data() + head * dim * dim, keys);
    for (size_t i = 0; i < forms.size(); ++i) {
      logits[i] = logits[i] / root + forms[i] / (2 * d);
    }
    SoftmaxInPlace(logits.data(), keys.count);
    for (size_t i = 0; i < mass.size(); ++i) mass[i] = mass[i] + logits[i];
  }
  for (float& m : mass) m = m / static_cast<float>(queries.num_heads);
  return mass;
}

std::vector<float> ValueNormsL1(const HeadPanels& values) {
  std::vector<float> norms(static_cast<size_t>(values.count));
  for (size_t i = 0; i < norms.size(); ++i) {
    for (int32_t c = 0; c < values.dim; ++c) {
      norms[i] = norms[i] + std::abs(At(values, static_cast<int64_t>(i), c));
    }
  }
  return norms;
}

std::vector<float> ValueNormsL2(const HeadPanels& values) {
  return Norms(values);
}

}  // namespace farkv

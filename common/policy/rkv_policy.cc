#include "common/policy/rkv_policy.h"

#include <algorithm>
#include <cmath>

#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/panel_math.h"
#include "common/policy/placement_settings.h"

namespace farkv {
namespace {

float FromRatio(int32_t ratio) {
  return static_cast<float>(ratio) / static_cast<float>(kRatioOne);
}

// Unit keys, as panels and as rows of `dim` elements.
struct UnitKeys {
  HeadPanels panels;
  std::vector<float> rows;
  std::vector<float> norms;
};

UnitKeys MakeUnitKeys(const HeadPanels& keys) {
  UnitKeys unit;
  unit.panels = keys;
  unit.norms = SquaredNorms(keys);
  constexpr auto kRows = static_cast<size_t>(HeadPanels::kRows);
  const auto dim = static_cast<size_t>(keys.dim);
  const auto count = static_cast<size_t>(keys.count);
  unit.rows.resize(count * dim);
  for (size_t i = 0; i < count; ++i) {
    unit.norms[i] = std::sqrt(unit.norms[i]);
    float* lane = unit.panels.data.data() + i / kRows * kRows * dim + i % kRows;
    for (size_t c = 0; c < dim; ++c) {
      lane[c * kRows] = lane[c * kRows] / (unit.norms[i] + 1e-8f);
      unit.rows[i * dim + c] = lane[c * kRows];
    }
  }
  return unit;
}

// Calls edit(i, cosines of row i with every row), then adds the row; sums of 64
// rows are fp32, sums of those double.
template <typename Edit>
std::vector<float> ColumnMeans(const HeadPanels& keys, Edit edit) {
  constexpr int64_t kBlock = 64;
  const UnitKeys unit = MakeUnitKeys(keys);
  const int64_t count = keys.count;
  const auto columns = static_cast<size_t>(count);
  const auto stride = static_cast<size_t>(keys.padded());
  std::vector<float> cosines(static_cast<size_t>(kBlock) * stride);
  std::vector<double> totals(columns);
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t rows = std::min(kBlock, count - first);
    MultiplyPanels(unit.rows.data() + first * keys.dim, rows, unit.panels,
                   cosines.data());
    std::vector<float> sums(columns);
    for (int64_t r = 0; r < rows; ++r) {
      const auto i = static_cast<size_t>(first + r);
      if (!std::isfinite(unit.norms[i])) continue;
      const std::span<float> row(
          cosines.data() + static_cast<size_t>(r) * stride, columns);
      row[i] = 0;
      edit(row);
      for (size_t j = 0; j < columns; ++j) sums[j] = sums[j] + row[j];
    }
    for (size_t j = 0; j < columns; ++j) totals[j] += sums[j];
  }
  std::vector<float> means(columns);
  for (size_t j = 0; j < columns; ++j) {
    means[j] = std::isfinite(unit.norms[j])
                   ? static_cast<float>(totals[j] / static_cast<double>(count))
                   : std::nanf("");
  }
  return means;
}

// The first `count` rows of whole `keys`.
HeadVectors FirstRows(const HeadVectors& keys, int64_t count) {
  HeadVectors first = keys;
  first.rows = keys.rows.first(static_cast<size_t>(count));
  return first;
}

}  // namespace

std::vector<float> MeanCosines(const HeadPanels& keys) {
  return ColumnMeans(keys, [](std::span<float>) {});
}

std::vector<float> ForgivingMeanCosines(const HeadPanels& keys,
                                        float threshold) {
  return ColumnMeans(keys, [threshold](std::span<float> row) {
    size_t forgiven = row.size() - 1;
    while (forgiven > 0 && !(row[forgiven] > threshold)) --forgiven;
    row[forgiven] = 0;
  });
}

RkvPolicy RkvPolicy::Official() {
  return {.window = {WindowScorer::kGroupMax, 8, 7}};
}

RkvPolicy RkvPolicy::Mean() {
  return {.variant = RkvVariant::kMean,
          .window = {WindowScorer::kCandidateMean, 64, 5},
          .lambda = 5000};
}

absl::Status RkvPolicy::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("lambda", lambda, 0, kRatioOne));
  FARKV_RETURN_IF_ERROR(CheckRange("threshold", threshold, 0, kRatioOne));
  FARKV_RETURN_IF_ERROR(CheckRange("interval", interval, 1, int64_t{1} << 32));
  return window.Validate();
}

bool RkvPolicy::IsDue(const EventCounts& counts) const {
  return variant == RkvVariant::kOfficial
             ? IsDueByInterval(counts, interval)
             : IsDueByBuffer(counts, window.window);
}

int64_t RkvPolicy::AlwaysKept(int64_t /*room*/) const { return window.window; }

absl::StatusOr<RankedRows> RkvPolicy::Rank(const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  FARKV_RETURN_IF_ERROR(RequireKeys(input, "rkv"));
  FARKV_ASSIGN_OR_RETURN(const std::vector<float> mass,
                         CandidateMass(input, window, "rkv"));
  RankedRows ranked = StartRanking(input, 0, window.window);
  const auto candidates = static_cast<int64_t>(mass.size());
  std::vector<float> redundancy =
      variant == RkvVariant::kOfficial
          ? ForgivingMeanCosines(MakePanels(input.keys), FromRatio(threshold))
          : MeanCosines(MakePanels(FirstRows(input.keys, candidates)));
  const auto count = static_cast<int64_t>(redundancy.size());
  redundancy.resize(redundancy.size() + HeadPanels::kRows);
  SoftmaxInPlace(redundancy.data(), count);
  const float weight = FromRatio(lambda);
  const float rest = FromRatio(kRatioOne - lambda);
  for (size_t i = 0; i < mass.size(); ++i) {
    ranked.rows[i].key = weight * mass[i] - rest * redundancy[i];
  }
  return ranked;
}

}  // namespace farkv

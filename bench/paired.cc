#include "bench/paired.h"

#include <algorithm>

namespace farkv::bench {
namespace {

// The value a fraction `at` of the way through the sorted values.
double Quantile(const std::vector<double>& sorted, double at) {
  const double index = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(index);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = index - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

}  // namespace

std::vector<std::vector<double>> RunRounds(
    int num_rounds, std::span<const Contender> contenders) {
  const size_t count = contenders.size();
  std::vector<std::vector<double>> seconds(count);
  for (const Contender& contender : contenders) contender();
  for (size_t round = 0; round < static_cast<size_t>(num_rounds); ++round) {
    for (size_t i = 0; i < count; ++i) {
      const size_t turn = (round + i) % count;
      seconds[turn].push_back(contenders[turn]());
    }
  }
  return seconds;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

double Spread(std::vector<double> values) {
  if (values.size() < 4) return 0;
  std::sort(values.begin(), values.end());
  return (Quantile(values, 0.75) - Quantile(values, 0.25)) /
         Quantile(values, 0.5);
}

Comparison Compare(std::span<const double> seconds,
                   std::span<const double> yardstick_seconds) {
  std::vector<double> ratios;
  for (size_t i = 0; i < seconds.size(); ++i) {
    ratios.push_back(yardstick_seconds[i] / seconds[i]);
  }
  return {Median({seconds.begin(), seconds.end()}),
          Median({yardstick_seconds.begin(), yardstick_seconds.end()}),
          Median(ratios), Spread(ratios)};
}

}  // namespace farkv::bench

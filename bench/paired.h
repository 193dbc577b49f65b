// Interleaved measurement: in each round every contender runs once, and
// contenders are compared within a round, so that a machine that is slow for a
// while is slow for all of them.
//
// Goal: ratios that hold on a shared machine. Non-goal: absolute figures.
#ifndef FARKV_BENCH_PAIRED_H_
#define FARKV_BENCH_PAIRED_H_

#include <functional>
#include <span>
#include <vector>

namespace farkv::bench {

// Does a fixed amount of work and returns the seconds it took.
using Contender = std::function<double()>;

// Seconds by [contender][round]. One round more is run first and dropped. The
// order of the contenders turns round by round.
std::vector<std::vector<double>> RunRounds(
    int num_rounds, std::span<const Contender> contenders);

// `values` must not be empty.
double Median(std::vector<double> values);
// Interquartile range over median; 0 for fewer than four values.
double Spread(std::vector<double> values);

struct Comparison {
  double seconds = 0;            // median of the contender
  double yardstick_seconds = 0;  // median of the yardstick
  double ratio = 0;   // median of yardstick / contender: above 1, it is faster
  double spread = 0;  // of these ratios
};
// Both by round, from one RunRounds.
Comparison Compare(std::span<const double> seconds,
                   std::span<const double> yardstick_seconds);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_PAIRED_H_

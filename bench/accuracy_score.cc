// What came of a row's programs, and how two rows compare.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/accuracy_run.h"

namespace farkv::bench {
namespace {

constexpr double kZ95 = 1.959964;  // two-sided, of the normal distribution

// Of numbers that are paired already.
PairedDifference Summarise(std::span<const double> differences) {
  const auto count = static_cast<double>(differences.size());
  double sum = 0, squares = 0;
  for (const double difference : differences) {
    sum += difference;
    squares += difference * difference;
  }
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean);
  return {mean, kZ95 * std::sqrt(variance / count)};
}

// The token at a position of the trace that was made; -1 where it ended before.
int32_t TokenAt(const EncodedProgram& program, const std::vector<int32_t>& made,
                int64_t position) {
  const auto index = static_cast<size_t>(position);
  if (index < program.prompt_size) return program.tokens[index];
  const size_t k = index - program.prompt_size;
  return k < made.size() ? made[k] : -1;
}

void ScoreLookups(const EncodedProgram& program, ProgramOutcome& outcome) {
  const std::vector<int32_t>& made = outcome.run.tokens;
  for (const Lookup& lookup : program.lookups) {
    // The value stands behind the name.
    const int32_t value = TokenAt(program, made, lookup.position + 1);
    ++outcome.asked;
    outcome.found +=
        value >= 0 &&
        std::any_of(lookup.mentions.begin(), lookup.mentions.end(),
                    [&](int64_t mention) {
                      return TokenAt(program, made, mention) == value;
                    });
  }
}

}  // namespace

void ScoreProgram(const EncodedProgram& program, ProgramOutcome& outcome) {
  const std::vector<int32_t>& tokens = outcome.run.tokens;
  std::vector<bool> right(program.tokens.size(), true);
  for (size_t i = program.prompt_size; i < program.tokens.size(); ++i) {
    if (!program.generated[i]) continue;
    const size_t k = i - program.prompt_size;
    right[i] = k < tokens.size() && tokens[k] == program.tokens[i];
    ++outcome.made;
    outcome.right += right[i];
  }
  outcome.answered = true;
  const size_t first = program.lookups.size() - program.num_answers;
  for (size_t i = first; i < program.lookups.size(); ++i) {
    // The token behind the one that looks up.
    outcome.answered =
        outcome.answered &&
        right[static_cast<size_t>(program.lookups[i].position) + 1];
  }
  ScoreLookups(program, outcome);
}

double RowOutcome::answered() const {
  const auto right =
      std::count_if(programs.begin(), programs.end(),
                    [](const ProgramOutcome& p) { return p.answered; });
  return static_cast<double>(right) / static_cast<double>(programs.size());
}

double RowOutcome::found() const {
  int64_t asked = 0, found = 0;
  for (const ProgramOutcome& program : programs) {
    asked += program.asked;
    found += program.found;
  }
  return asked == 0 ? 1
                    : static_cast<double>(found) / static_cast<double>(asked);
}

double RowOutcome::surprise() const {
  double sum = 0, count = 0;
  for (const ProgramOutcome& program : programs) {
    for (const double nats : program.surprise) sum += nats;
    count += static_cast<double>(program.surprise.size());
  }
  return sum / count;
}

Interval WilsonInterval(double share, double count) {
  const double z2 = kZ95 * kZ95;
  const double middle = share + z2 / (2 * count);
  const double reach =
      kZ95 * std::sqrt(share * (1 - share) / count + z2 / (4 * count * count));
  const double scale = 1 + z2 / count;
  return {std::max(0.0, (middle - reach) / scale),
          std::min(1.0, (middle + reach) / scale)};
}

PairedDifference CompareAnswers(const RowOutcome& row, const RowOutcome& base) {
  std::vector<double> differences;
  for (size_t i = 0; i < row.programs.size(); ++i) {
    differences.push_back(static_cast<double>(row.programs[i].answered) -
                          static_cast<double>(base.programs[i].answered));
  }
  return Summarise(differences);
}

PairedDifference CompareSurprise(const RowOutcome& row,
                                 const RowOutcome& base) {
  std::vector<double> differences;
  for (size_t i = 0; i < row.programs.size(); ++i) {
    const auto& ours = row.programs[i].surprise;
    const auto& theirs = base.programs[i].surprise;
    for (size_t k = 0; k < ours.size(); ++k) {
      differences.push_back(ours[k] - theirs[k]);
    }
  }
  return Summarise(differences);
}

bool PassesGate(const ProgramSet& set, const RowOutcome& full) {
  return full.answered() >= set.gate.answers &&
         full.found() >= set.gate.lookups;
}

std::string GateReport(const std::string& task, const ProgramSet& set,
                       const RowOutcome& full) {
  int64_t asked = 0, found = 0;
  for (const ProgramOutcome& program : full.programs) {
    asked += program.asked;
    found += program.found;
  }
  std::string line = absl::StrFormat(
      "%s: with the full cache %d of %d lookups find their value (%.3f %%, "
      "gate "
      "%g %%), %.1f %% of %d programs are answered right (gate %g %%): ",
      task, found, asked, 100 * full.found(), 100 * set.gate.lookups,
      100 * full.answered(), full.programs.size(), 100 * set.gate.answers);
  if (PassesGate(set, full)) return line + "gate passed";
  return line + "gate missed, its other rows are left out";
}

bool SameTokens(const RowOutcome& a, const RowOutcome& b) {
  return std::equal(
      a.programs.begin(), a.programs.end(), b.programs.begin(),
      b.programs.end(), [](const ProgramOutcome& x, const ProgramOutcome& y) {
        return x.run.tokens == y.run.tokens && x.surprise == y.surprise;
      });
}

double Surprise(std::span<const float> logits, int32_t token) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return std::log(sum) + top - logits[static_cast<size_t>(token)];
}

}  // namespace farkv::bench

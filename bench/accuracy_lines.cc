#include "bench/accuracy_lines.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/page/page_format.h"
#include "nlohmann/json.hpp"

namespace farkv::bench {
namespace {

// What T2 in its default form may lose (issue of the accuracy bench): one point
// of answers, half a per cent of likelihood.
constexpr double kT2AnswersGoal = 0.99, kT2LikelihoodGoal = 0.995;

// Means over the programs of a row.
class Means {
 public:
  explicit Means(const RowOutcome& row) : row_(row) {}

  template <typename F>
  double Of(F value) const {
    double sum = 0;
    for (const ProgramOutcome& p : row_.programs) {
      sum += static_cast<double>(value(p));
    }
    return sum / static_cast<double>(row_.programs.size());
  }
  template <typename T>
  double Tier(T SequenceTierStats::*field) const {
    return Of([field](const auto& p) { return p.run.end.tiers.*field; });
  }

 private:
  const RowOutcome& row_;
};

bool IsDefaultT2(const AccuracyRow& row) {
  return row.t2_ratio > 0 && row.t2_bits == 8;
}

double T2Share(KvGeometry geometry, int head_dim, int bits) {
  geometry.head_dim = head_dim;
  return static_cast<double>(PageLayout::T2(geometry, bits).payload_bytes) /
         static_cast<double>(PageLayout::T1(geometry).payload_bytes);
}

void AddAnswers(const AccuracyResult& r, BenchLine& line) {
  const auto count = static_cast<double>(r.outcome.programs.size());
  const double share = r.outcome.answered();
  const Interval interval = WilsonInterval(share, count);
  const PairedDifference difference = CompareAnswers(r.outcome, r.full);
  line.value = 100 * share;
  line.unit = "% right";
  if (r.row.is_full()) {
    line.yardstick = {"all programs", 100};
    line.ratio = share;
    if (r.set.gate.answers > 0) line.goal = r.set.gate.answers;
  } else {
    line.yardstick = {"full cache", 100 * r.full.answered()};
    if (r.full.answered() > 0) line.ratio = share / r.full.answered();
    if (r.row.is_exact()) line.goal = 1.0;
    if (IsDefaultT2(r.row)) line.goal = kT2AnswersGoal;
  }
  line.metrics = {{"low_95", 100 * interval.low},
                  {"high_95", 100 * interval.high},
                  {"against_full", 100 * difference.mean},
                  {"against_full_95", 100 * difference.half_width},
                  {"lookups_right", 100 * r.outcome.found()}};
  if (r.row.is_full() && r.set.gate.lookups > 0) {
    line.metrics["lookups_gate"] = 100 * r.set.gate.lookups;
  }
}

void AddSurprise(const AccuracyResult& r, BenchLine& line) {
  const double nats = r.outcome.surprise(), full = r.full.surprise();
  const PairedDifference difference = CompareSurprise(r.outcome, r.full);
  double tokens = 0;
  for (const ProgramOutcome& program : r.outcome.programs) {
    tokens += static_cast<double>(program.surprise.size());
  }
  line.value = nats;
  line.unit = "nats per token";
  line.better = Better::kLower;
  if (!r.row.is_full()) {
    line.yardstick = {"full cache", full};
    line.ratio = full / nats;
    if (r.row.is_exact()) line.goal = 1.0;
    if (IsDefaultT2(r.row)) line.goal = kT2LikelihoodGoal;
  }
  line.metrics = {{"perplexity", std::exp(nats)},
                  {"against_full", difference.mean},
                  {"against_full_95", difference.half_width},
                  {"tokens_scored", tokens}};
}

void AddShares(const AccuracyResult& r, const Means& means, BenchLine& line) {
  const double made = means.Of([](const auto& p) { return p.made; });
  const double right = means.Of([](const auto& p) { return p.right; });
  const double lookups = means.Of([](const auto& p) { return p.lookups; });
  const double present = means.Of([](const auto& p) { return p.present; });
  if (!r.set.by_likelihood) {
    line.metrics["tokens_right"] = 100 * right / made;
    line.metrics["operand_present"] =
        r.row.policy.has_value() && lookups > 0 ? 100 * present / lookups : 100;
  }
  line.metrics["destroyed_at_end"] =
      100 * means.Tier(&SequenceTierStats::destroyed_share);
  line.metrics["destroyed_average"] =
      100 * means.Tier(&SequenceTierStats::destroyed_share_average);
  line.metrics["tokens"] =
      means.Of([](const auto& p) { return p.run.tokens.size(); });
}

void AddTiers(const AccuracyResult& r, const Means& means, BenchLine& line) {
  const double row_bytes = r.outcome.token_bytes;
  const double t0 = means.Tier(&SequenceTierStats::t0_tokens);
  const double t2 = RoundedTokens(r.row, r.outcome);
  const double t1 = means.Tier(&SequenceTierStats::t1_tokens) +
                    means.Tier(&SequenceTierStats::t2_tokens) - t2;
  line.metrics["t0_tokens"] = t0;
  line.metrics["t1_tokens"] = t1;
  line.metrics["t2_tokens"] = t2;
  line.metrics["t3_tokens"] = means.Tier(&SequenceTierStats::t3_tokens);
  line.metrics["t0_bytes"] = t0 * row_bytes;
  line.metrics["t1_bytes"] = t1 * row_bytes;
  line.metrics["t2_bytes"] = t2 * r.outcome.t2_token_bytes;
  line.metrics["cold_rows_read"] = ColdRowsRead(r.outcome);
  if (!r.row.is_rounded()) return;
  line.metrics["t2_of_t1_bytes"] = 100 * r.outcome.t2_token_bytes / row_bytes;
  if (r.row.t2_ratio == 0) return;
  line.metrics["t2_of_t1_bytes_heads_of_128"] =
      100 * T2Share(r.set.geometry, 128, r.row.t2_bits);
}

void AddRanges(const ValueRanges::Summary& ranges, BenchLine& line) {
  line.metrics["value_range_median"] = ranges.median;
  line.metrics["value_range_p90"] = ranges.p90;
  line.metrics["value_range_p99"] = ranges.p99;
  line.metrics["value_range_largest"] = ranges.largest;
  line.metrics["first_page_rows"] = 100 * ranges.first_page_rows;
  line.metrics["first_page_in_top_quarter"] =
      100 * ranges.first_page_in_top_quarter;
}

std::string Key(const std::string& case_name, size_t programs, uint64_t seed) {
  return absl::StrCat(case_name, " ", programs, " ", seed);
}

std::string CaseName(const std::string& task, const std::string& row) {
  return absl::StrCat(task, "/", row);
}

}  // namespace

double ColdRowsRead(const RowOutcome& outcome) {
  return Means(outcome).Of([](const ProgramOutcome& p) {
    const SequenceTierStats& tiers = p.run.end.tiers;
    return tiers.cold_rows_mapped + tiers.cold_rows_fetched +
           tiers.cold_rows_pushed_down;
  });
}

double DestroyedShare(const RowOutcome& outcome) {
  return Means(outcome).Tier(&SequenceTierStats::destroyed_share);
}

double GroupsReadShare(const RowOutcome& outcome) {
  const Means means(outcome);
  const double read = means.Tier(&SequenceTierStats::selected_groups);
  const double skipped = means.Tier(&SequenceTierStats::skipped_groups);
  return read + skipped > 0 ? read / (read + skipped) : 1;
}

double RoundedTokens(const AccuracyRow& row, const RowOutcome& outcome) {
  return Means(outcome).Tier(row.rounding.has_value()
                                 ? &SequenceTierStats::t1_tokens
                                 : &SequenceTierStats::t2_tokens);
}

BenchLine MakeAccuracyLine(const AccuracyResult& result) {
  const AccuracyRow& row = result.row;
  BenchLine line;
  line.bench = "accuracy";
  line.case_name = CaseName(result.task, row.name);
  line.runs = 1;
  if (result.set.by_likelihood) {
    AddSurprise(result, line);
  } else {
    AddAnswers(result, line);
  }
  line.params = {{"task", result.task},
                 {"row", row.name},
                 {"budget", row.budget_kind()},
                 {"t0_ratio", row.hbm_ratio / 100.0 / 100.0},
                 {"programs", result.outcome.programs.size()},
                 {"seed", result.seed}};
  if (row.policy.has_value() && row.budget.kind == BudgetKind::kBounds) {
    const EvictionBudget& bounds = row.budget.bounds;
    line.params["per_event_ratio"] = bounds.per_event_ratio / 100.0 / 100.0;
    line.params["cumulative_cap"] = bounds.cumulative_cap / 100.0 / 100.0;
  }
  const Means means(result.outcome);
  AddShares(result, means, line);
  AddTiers(result, means, line);
  if (row.selects()) {
    line.metrics["groups_read"] = 100 * GroupsReadShare(result.outcome);
  }
  if (row.measures_ranges) AddRanges(result.outcome.ranges, line);
  return line;
}

absl::StatusOr<DoneRows> DoneRows::Parse(absl::string_view lines) {
  DoneRows done;
  for (absl::string_view text : absl::StrSplit(lines, '\n')) {
    if (absl::StripAsciiWhitespace(text).empty()) continue;
    const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                            /*allow_exceptions=*/false);
    const bool is_ours = json.is_object() && json.contains("case") &&
                         json["case"].is_string() && json.contains("params") &&
                         json["params"].contains("programs") &&
                         json["params"].contains("seed") &&
                         json["params"]["programs"].is_number_unsigned() &&
                         json["params"]["seed"].is_number_unsigned();
    if (!is_ours) {
      return absl::InvalidArgumentError(absl::StrCat(
          "this is no line of farkv-bench accuracy: ", std::string(text)));
    }
    done.keys_.insert(Key(json["case"].get<std::string>(),
                          json["params"]["programs"].get<size_t>(),
                          json["params"]["seed"].get<uint64_t>()));
  }
  return done;
}

bool DoneRows::Contains(const std::string& task, const std::string& row,
                        size_t num_programs, uint64_t seed) const {
  return keys_.count(Key(CaseName(task, row), num_programs, seed)) > 0;
}

}  // namespace farkv::bench

#include "gpu_worker/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using Kind = RopeScaling::Kind;

std::vector<double> PlainFrequencies(double theta, int32_t head_dim) {
  std::vector<double> frequencies;
  for (int32_t i = 0; i < head_dim; i += 2) {
    frequencies.push_back(std::pow(theta, -static_cast<double>(i) / head_dim));
  }
  return frequencies;
}

// The base that stretches the longest wave with the sequence.
double DynamicTheta(double theta, int32_t head_dim, const RopeScaling& scaling,
                    int64_t num_tokens) {
  const double original = scaling.original_max_position;
  const double tokens = std::max(original, static_cast<double>(num_tokens));
  const double stretch =
      scaling.factor * tokens / original - (scaling.factor - 1.0);
  return theta *
         std::pow(stretch, static_cast<double>(head_dim) / (head_dim - 2));
}

// The (fractional) pair that turns `turns` times within the original context.
double PairThatTurns(double turns, double theta, int32_t head_dim,
                     int32_t original_max_position) {
  return head_dim *
         std::log(original_max_position / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(theta));
}

void ScaleYarn(double theta, int32_t head_dim, const RopeScaling& scaling,
               std::vector<double>& frequencies) {
  double low = PairThatTurns(scaling.beta_fast, theta, head_dim,
                             scaling.original_max_position);
  double high = PairThatTurns(scaling.beta_slow, theta, head_dim,
                              scaling.original_max_position);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // as the reference, against 0 / 0
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= ramp / scaling.factor + (1.0 - ramp);
  }
}

void ScaleLlama3(const RopeScaling& scaling, std::vector<double>& frequencies) {
  for (double& frequency : frequencies) {
    const double turns =
        scaling.original_max_position * frequency / (2.0 * std::numbers::pi);
    const double kept =
        std::clamp((turns - scaling.low_freq_factor) /
                       (scaling.high_freq_factor - scaling.low_freq_factor),
                   0.0, 1.0);
    frequency *= (1.0 - kept) / scaling.factor + kept;
  }
}

absl::Status Refuse(const char* field, double value, const char* rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("rope_scaling: ", field, " is ", value, ", must be ", rule));
}

}  // namespace

absl::Status RopeScaling::Validate(int32_t head_dim) const {
  if (!divisors.empty()) {
    if (divisors.size() != static_cast<size_t>(head_dim) / 2) {
      return Refuse("number of divisors", static_cast<double>(divisors.size()),
                    absl::StrCat("head_dim / 2, ", head_dim / 2).c_str());
    }
    for (const float divisor : divisors) {
      if (!(divisor > 0.0f) || !std::isfinite(divisor)) {
        return Refuse("divisor", static_cast<double>(divisor), "positive");
      }
    }
  }
  if (kind == Kind::kNone) return absl::OkStatus();
  if (!(factor >= 1.0) || !std::isfinite(factor)) {
    return Refuse("factor", factor, "a number of at least 1");
  }
  if (kind != Kind::kLinear && original_max_position < 1) {
    return Refuse("original_max_position_embeddings", original_max_position,
                  "at least 1");
  }
  if (kind == Kind::kYarn) {
    if (!(beta_slow > 0.0)) return Refuse("beta_slow", beta_slow, "positive");
    if (!(beta_fast >= beta_slow)) {
      return Refuse("beta_fast", beta_fast,
                    absl::StrCat("at least beta_slow, ", beta_slow).c_str());
    }
    if (!(attention_factor > 0.0) || !std::isfinite(attention_factor)) {
      return Refuse("attention_factor", attention_factor, "positive");
    }
  }
  if (kind == Kind::kLlama3) {
    if (!(low_freq_factor > 0.0)) {
      return Refuse("low_freq_factor", low_freq_factor, "positive");
    }
    if (!(high_freq_factor > low_freq_factor)) {
      return Refuse(
          "high_freq_factor", high_freq_factor,
          absl::StrCat("above low_freq_factor, ", low_freq_factor).c_str());
    }
  }
  return absl::OkStatus();
}

int32_t RopeScaling::MaxPosition(int32_t stated_max_position) const {
  double reached = stated_max_position;
  if (kind == Kind::kLinear || kind == Kind::kDynamic) {
    reached = factor * stated_max_position;
  } else if (kind == Kind::kYarn) {
    reached = std::max(reached, factor * original_max_position);
  }
  return static_cast<int32_t>(std::min(reached, double{kMaxPositions}));
}

double YarnAttentionFactor(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

std::vector<double> RopeFrequencies(double theta, int32_t head_dim,
                                    const RopeScaling& scaling,
                                    int64_t num_tokens) {
  if (scaling.kind == Kind::kDynamic) {
    theta = DynamicTheta(theta, head_dim, scaling, num_tokens);
  }
  std::vector<double> frequencies = PlainFrequencies(theta, head_dim);
  if (scaling.kind == Kind::kLinear) {
    for (double& frequency : frequencies) frequency /= scaling.factor;
  } else if (scaling.kind == Kind::kYarn) {
    ScaleYarn(theta, head_dim, scaling, frequencies);
  } else if (scaling.kind == Kind::kLlama3) {
    ScaleLlama3(scaling, frequencies);
  }
  for (size_t i = 0; i < scaling.divisors.size(); ++i) {
    frequencies[i] /= static_cast<double>(scaling.divisors[i]);
  }
  return frequencies;
}

}  // namespace farkv

#include "common/policy/cur_dkv_policy.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/panel_math.h"
#include "common/policy/ranking.h"

namespace farkv {

absl::Status CurDkvPolicy::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("buffer", buffer, 1, 4096));
  FARKV_RETURN_IF_ERROR(CheckRange("sinks", sinks, 0, int64_t{1} << 32));
  return CheckRange("rank", rank, 1, 512);
}

bool CurDkvPolicy::IsDue(const EventCounts& counts) const {
  return IsDueByBuffer(counts, buffer);
}

int64_t CurDkvPolicy::AlwaysKept(int64_t /*room*/) const {
  return sinks + buffer;
}

absl::StatusOr<RankedRows> CurDkvPolicy::Rank(
    const EvictionInput& input) const {
  PolicyDraws draws = input.draws;
  draws.event = PolicyDraws::kAll;
  return RankByProjection(*this, input, draws);
}

absl::StatusOr<std::vector<float>> ProjectedProducts(
    const EvictionInput& input, std::span<const float> projection) {
  FARKV_RETURN_IF_ERROR(RequireKeys(input, "cur-dkv"));
  FARKV_RETURN_IF_ERROR(RequireValues(input, "cur-dkv"));
  const auto dim = static_cast<size_t>(input.keys.dim);
  if (input.values.dim != input.keys.dim ||
      (dim > 0 && projection.size() % dim != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cur-dkv: keys of ", dim, ", values of ", input.values.dim,
                     " elements, projection of ", projection.size()));
  }
  if (input.positions.empty()) return std::vector<float>();
  const std::vector<float> keys =
      ProjectedNorms(projection, MakePanels(input.keys));
  const std::vector<float> values =
      ProjectedNorms(projection, MakePanels(input.values));
  std::vector<float> products(input.positions.size());
  for (size_t i = 0; i < products.size(); ++i) {
    products[i] = keys[i] * values[i];
  }
  return products;
}

absl::StatusOr<RankedRows> RankByProjection(const CurDkvPolicy& policy,
                                            const EvictionInput& input,
                                            const PolicyDraws& draws) {
  FARKV_RETURN_IF_ERROR(policy.Validate());
  const std::vector<float> projection =
      NormalProjection(draws, policy.rank, input.keys.dim);
  FARKV_ASSIGN_OR_RETURN(const std::vector<float> products,
                         ProjectedProducts(input, projection));
  RankedRows ranked = StartRanking(input, policy.sinks, policy.buffer);
  for (size_t i = 0; i < products.size(); ++i) {
    ranked.rows[i].measure = products[i];
    ranked.rows[i].key = products[i];
  }
  return ranked;
}

}  // namespace farkv

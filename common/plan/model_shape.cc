#include "common/plan/model_shape.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"

namespace farkv {

absl::Status ModelShape::Validate() const {
  FARKV_RETURN_IF_ERROR(Geometry(DType::kBf16).Validate());
  FARKV_RETURN_IF_ERROR(
      CheckRange("num_query_heads", num_query_heads, 1, 1024));
  FARKV_RETURN_IF_ERROR(CheckRange("hidden_size", hidden_size, 1, 1 << 17));
  FARKV_RETURN_IF_ERROR(
      CheckRange("intermediate_size", intermediate_size, 1, 1 << 20));
  FARKV_RETURN_IF_ERROR(CheckRange("vocab_size", vocab_size, 1, 1 << 22));
  if (num_query_heads % num_kv_heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("num_query_heads is ", num_query_heads,
                   ", not a multiple of num_kv_heads ", num_kv_heads));
}

int64_t ModelShape::NumProductWeights() const {
  const int64_t hidden = hidden_size;
  // Queries and the way back; keys and values.
  const int64_t attention =
      2 * hidden * (int64_t{num_query_heads} + num_kv_heads) * head_dim;
  const int64_t feed_forward = 3 * hidden * intermediate_size;
  return num_layers * (attention + feed_forward) + hidden * vocab_size;
}

}  // namespace farkv

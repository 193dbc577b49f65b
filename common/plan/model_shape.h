// As much of a model as its sizes depend on. Plain values; thread-compatible.
#ifndef FARKV_COMMON_PLAN_MODEL_SHAPE_H_
#define FARKV_COMMON_PLAN_MODEL_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

// A decoder of the Llama family: gated feed-forward, grouped queries.
struct ModelShape {
  int32_t num_layers = 0;
  int32_t num_query_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t vocab_size = 0;

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;

  KvGeometry Geometry(DType dtype) const {
    return {num_layers, num_kv_heads, head_dim, dtype};
  }
  // Weights that every decode step multiplies with: those of all layers and of
  // the output head. Not the table of embeddings, of which a step reads a row.
  int64_t NumProductWeights() const;
};

}  // namespace farkv

#endif  // FARKV_COMMON_PLAN_MODEL_SHAPE_H_

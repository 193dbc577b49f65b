// What a destroying policy sees: the cached rows of one layer and KV head at
// one event. Plain values and borrowed spans; thread-compatible.
#ifndef FARKV_COMMON_POLICY_EVICTION_INPUT_H_
#define FARKV_COMMON_POLICY_EVICTION_INPUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/policy/draws.h"
#include "common/policy/head_vectors.h"

namespace farkv {

// The last queries of the query heads that read one KV head, rotated, oldest
// first: element c of query w of head h is data[(h * num_queries + w) * dim +
// c]. Query w is that of position num_tokens - num_queries + w.
struct WindowQueries {
  std::span<const float> data;
  int32_t num_heads = 0;  // G
  int32_t num_queries = 0;
  float scale = 0;  // of logits; 1 / sqrt(dim) unless the model says otherwise
};

// Spans must outlive the call. A policy that does not read a span takes an
// empty one; each says what it reads. A node that holds a part of the rows
// gives those, and `mass` from the worker.
struct EvictionInput {
  // Absolute positions, strictly ascending.
  std::span<const int64_t> positions;
  // Tokens ever processed; all positions are below it.
  int64_t num_tokens = 0;
  // Rows that stay after the event. Includes everything that always stays.
  int64_t num_kept = 0;
  // Empty, or one per row: nonzero keeps the row whatever the policy says.
  std::span<const uint8_t> pinned;

  HeadVectors keys;
  HeadVectors values;
  WindowQueries window;
  // Attention mass of rows, in their order: at least of those rows that the
  // policy may destroy. Read instead of `window` when it is not empty.
  std::span<const float> mass;
  // One per row: attention weights added over all steps, fixed point 2^-40. Of
  // this head's group for H2oPolicy, of all layers and heads for TiersPolicy.
  std::span<const int64_t> cumulative;

  PolicyDraws draws;

  int64_t num_rows() const { return static_cast<int64_t>(positions.size()); }
  // How many rows are older than the `recent` youngest tokens; they are the
  // first ones.
  int64_t NumOlder(int64_t recent) const;

  // INVALID_ARGUMENT naming the span and the counts compared.
  absl::Status Validate() const;
};

// Which tokens no policy may destroy. The defaults are the hierarchy's.
struct PinnedTokens {
  int64_t prompt_tokens = 0;  // 0 when the prompt is not protected
  // Generated tokens [first_generated, first_generated + sinks).
  int64_t first_generated = 0;
  int64_t sinks = 4;
  int64_t recent = 128;
};

// EvictionInput::pinned for these positions.
std::vector<uint8_t> PinRows(const PinnedTokens& pinned,
                             std::span<const int64_t> positions,
                             int64_t num_tokens);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_EVICTION_INPUT_H_

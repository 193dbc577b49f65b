// A decision of a memory node in plain values: what DecideEvictions carries in
// both directions, and the arithmetic that node and worker share, so that the
// same inputs give the same decision wherever the rows lie (DESIGN 6). Pure,
// thread-safe.
//
// A head's rows may be ranked by several parties, each of which holds a part of
// them (eviction_merge.h), or by one party that then decides alone.
#ifndef FARKV_COMMON_POLICY_EVICTION_CALL_H_
#define FARKV_COMMON_POLICY_EVICTION_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/policy/destruction_policy.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"
#include "common/policy/head_vectors.h"

namespace farkv {

// Of all heads of a call.
inline constexpr int64_t kMaxCandidates = 65536;
// Of one head, for policies that compare every row with every other.
inline constexpr int64_t kMaxComparedRows = 8192;

// Rows of one layer and KV head.
struct EvictionHead {
  int32_t layer = 0;
  int32_t kv_head = 0;
  std::vector<int64_t> positions = {};  // candidates, ascending
  // One per candidate where the policy reads it, else empty. `cumulative` is
  // fixed point 2^-40 and read instead of `mass`.
  std::vector<float> mass = {};
  std::vector<int64_t> cumulative = {};
  // Rows that stay, ascending, none of them a candidate.
  std::vector<int64_t> always_kept = {};
};

// "layer 2, head 1: ", before what is wrong with the head.
std::string HeadPrefix(const EvictionHead& head);

struct EvictionCall {
  SessionId session;
  Epoch epoch;
  uint64_t sequence_number = 0;
  uint64_t event = 0;
  DestructionPolicy policy;
  // Rows of each head that stay after the event, always_kept included.
  int64_t num_kept = 0;
  int64_t num_tokens = 0;  // ever processed
  uint64_t seed = 0;
  uint64_t request = 0;
  std::vector<EvictionHead> heads;
  // Every head has all its candidates here: the answer is what stays.
  bool final_list = false;

  int64_t NumCandidates() const;
  // INVALID_ARGUMENT naming head, field and the values compared;
  // FAILED_PRECONDITION when the policy needs rows of a head together and the
  // call does not say that they are.
  absl::Status Validate() const;
};

struct RankedHead {
  int32_t layer = 0;
  int32_t kv_head = 0;
  std::vector<EvictionRow> rows = {};  // one per candidate, unless final_list
  EvictionDecision decision = {};      // of a final_list
};

struct EvictionReply {
  std::vector<RankedHead> heads;  // in the order of the call
  uint64_t decision_id = 0;       // in the node's log
};

// The rows of a head as policies see them: candidates and those always kept, in
// ascending position.
struct HeadRows {
  std::vector<int64_t> positions;
  std::vector<uint8_t> pinned;
  std::vector<float> mass;
  std::vector<int64_t> cumulative;

  static HeadRows Of(const EvictionHead& head);
};

// Which of a head's vectors RankHead reads.
struct VectorsRead {
  bool keys = false;
  bool values = false;
  // Also of rows that are always kept; else theirs may be any memory.
  bool of_kept_rows = false;
};
VectorsRead VectorsReadBy(const DestructionPolicy& policy);

// Ranks the candidates, or decides. `rows` is HeadRows::Of(head); keys and
// values have a row for each of its positions where they are read, else may be
// empty. The call must be valid.
absl::StatusOr<RankedHead> RankHead(const EvictionCall& call,
                                    const EvictionHead& head,
                                    const HeadRows& rows,
                                    const HeadVectors& keys,
                                    const HeadVectors& values);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_EVICTION_CALL_H_

// Every destroying policy behind one name: what --eviction takes. Pure,
// thread-safe.
#ifndef FARKV_COMMON_POLICY_DESTRUCTION_POLICY_H_
#define FARKV_COMMON_POLICY_DESTRUCTION_POLICY_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/policy/baseline_policies.h"
#include "common/policy/cur_dkv_policy.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"
#include "common/policy/h2o_policy.h"
#include "common/policy/rkv_policy.h"
#include "common/policy/snap_kv_policy.h"
#include "common/policy/streaming_llm_policy.h"
#include "common/policy/vase_policy.h"

namespace farkv {

using DestructionPolicy =
    std::variant<TiersPolicy, H2oPolicy, StreamingLlmPolicy, SnapKvPolicy,
                 RkvPolicy, CurDkvPolicy, VaseAttnVPolicy, VaseDkvPolicy,
                 RandomPolicy, RecencyPolicy>;

// The policy of a flag's value, with its paper's settings: tiers, h2o,
// streaming-llm, snap-kv-prompt, snap-kv-rkv, snap-kv-vase, rkv-official,
// rkv-mean, cur-dkv, vase-attn-v, vase-dkv, random, recency; none destroys
// nothing. INVALID_ARGUMENT naming all of them for any other.
absl::StatusOr<std::optional<DestructionPolicy>> ParseDestructionPolicy(
    absl::string_view name);
// The name under which ParseDestructionPolicy knows it, whatever its settings.
std::string DestructionPolicyName(const DestructionPolicy& policy);
// All names, "none" first.
std::vector<std::string> DestructionPolicyNames();

// What a policy needs of the caller, beside the rows' positions.
struct PolicyNeeds {
  bool keys = false;
  bool values = false;
  bool mass = false;        // of the window, computed from keys and queries
  bool cumulative = false;  // attention added over all steps
  // Each row is ranked by itself, given its mass: rows of several nodes can be
  // merged.
  bool rows_alone = true;
  // One decision for all layers and heads.
  bool shared_by_heads = false;
};
PolicyNeeds NeedsOf(const DestructionPolicy& policy);

absl::Status ValidatePolicy(const DestructionPolicy& policy);
// Whether the policy, used alone, acts after this step.
bool IsDue(const DestructionPolicy& policy, const EventCounts& counts);

// Rows that stay whatever they hold, the protected prompt aside: sinks and the
// youngest. `room` is what the budget leaves beside the prompt.
int64_t AlwaysKept(const DestructionPolicy& policy, int64_t room);

// INVALID_ARGUMENT when what always stays and one more do not fit the budget:
// to be asked before a request is admitted (ALGORITHMS 0.3). `prompt_tokens` is
// 0 when the prompt is not protected.
absl::Status CheckAdmission(const DestructionPolicy& policy,
                            int64_t prompt_tokens, int64_t budget);

absl::StatusOr<RankedRows> RankRows(const DestructionPolicy& policy,
                                    const EvictionInput& input);
// num_by_measure of RankRows, from positions and counts alone: for the party
// that merges rows which others ranked. The input has all rows of the head.
int64_t NumByMeasure(const DestructionPolicy& policy,
                     const EvictionInput& input);
// RankRows, then ChooseRows of input.num_kept.
absl::StatusOr<EvictionDecision> DecideEviction(const DestructionPolicy& policy,
                                                const EvictionInput& input);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_DESTRUCTION_POLICY_H_

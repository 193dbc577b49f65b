// Selection: which groups of positions a step reads. It destroys nothing; what
// is not selected is read again as soon as it scores. Quest's bounds and a
// trained gate (SeerAttention-R, ALGORITHMS 8 and 9) give scores through one
// interface. Pure, thread-safe.
#ifndef FARKV_COMMON_POLICY_SELECTION_H_
#define FARKV_COMMON_POLICY_SELECTION_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/policy/key_bounds.h"

namespace farkv {

enum class SelectionPolicy : uint8_t {
  kNone,   // every row is read
  kQuest,  // upper bounds of logits
};

// "none", "quest", as --selection takes. INVALID_ARGUMENT naming both for any
// other.
const char* SelectionPolicyName(SelectionPolicy policy);
absl::StatusOr<SelectionPolicy> ParseSelectionPolicy(absl::string_view name);

// What a scorer of groups is asked: the current queries of the heads that read
// one KV head, [num_heads][dim], borrowed for the call.
struct GroupScoreQuery {
  uint64_t request = 0;
  int32_t layer = 0;
  int32_t kv_head = 0;
  int32_t num_heads = 0;
  std::span<const float> queries;
};

// One number per full group of the request's positions, in order, larger is
// read first. What a gate (SeerAttention-R) implements in Quest's place.
using GroupScorer =
    std::function<absl::StatusOr<std::vector<float>>(const GroupScoreQuery&)>;

// Quest for one KV head: each query head's bounds less that head's largest, so
// that heads with large logits do not dominate; then the largest over heads.
std::vector<float> QuestScores(const KeyBounds& bounds,
                               const GroupScoreQuery& query);

struct SelectionSettings {
  SelectionPolicy policy = SelectionPolicy::kNone;
  int32_t group_tokens = 16;
  // What a step reads of each KV head, the current group included: as many
  // tokens or, where it is above 0, this share of the groups, per 10,000.
  int64_t budget_tokens = 4096;
  int32_t budget_ratio = 0;
  // Layers below it read everything.
  int32_t dense_layers = 2;
  // Groups that are read at least.
  int64_t min_groups = 3;

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;
  // How many of `num_groups` groups a step of this layer reads.
  int64_t NumSelected(int32_t layer, int64_t num_groups) const;
};

// The groups to read, ascending: the last one, whose scores change with every
// token, groups whose score is NaN or +inf, then the best; of equal scores the
// younger. A score of -inf marks a group without rows: never read.
std::vector<int64_t> SelectGroups(std::span<const float> scores,
                                  int64_t num_selected);

// Whether a group of `rows` rows with upper bound `bound` holds less than
// e^-tau of the attention mass read so far (natural log-sum-exp `lse`): its
// mass is at most rows * exp(bound * scale).
bool IsNegligible(float bound, float scale, int32_t rows, float lse, float tau);

// SeerAttention-R's features of a group of keys (before rotation): per element
// the largest, the smallest and the mean, [3 * dim]. Keys are [rows][dim].
std::vector<float> GateFeatures(std::span<const float> keys, int32_t dim);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_SELECTION_H_

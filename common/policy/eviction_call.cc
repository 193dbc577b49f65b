#include "common/policy/eviction_call.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/limits.h"

namespace farkv {
namespace {

absl::Status Bad(const EvictionHead& head, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(HeadPrefix(head), why));
}

absl::Status CheckAscending(const EvictionHead& head, const char* field,
                            const std::vector<int64_t>& positions,
                            int64_t num_tokens) {
  int64_t next = 0;
  for (const int64_t position : positions) {
    if (position < next) {
      return Bad(
          head, absl::StrCat(field, " has ", position, " where at least ", next,
                             " must follow; positions ascend from 0"));
    }
    next = position + 1;
  }
  if (next <= num_tokens) return absl::OkStatus();
  return Bad(head, absl::StrCat(field, " has ", next - 1, " but only ",
                                num_tokens, " tokens were processed"));
}

absl::Status CheckDisjoint(const EvictionHead& head) {
  std::vector<int64_t> both;
  std::set_intersection(head.positions.begin(), head.positions.end(),
                        head.always_kept.begin(), head.always_kept.end(),
                        std::back_inserter(both));
  if (both.empty()) return absl::OkStatus();
  return Bad(head, absl::StrCat("position ", both.front(),
                                " is a candidate and always kept"));
}

absl::Status CheckOnePerCandidate(const EvictionHead& head, const char* field,
                                  size_t count) {
  if (count == 0 || count == head.positions.size()) return absl::OkStatus();
  return Bad(head, absl::StrCat(count, " ", field, " for ",
                                head.positions.size(), " candidates"));
}

// What the policy ranks by must be there.
absl::Status CheckNeeds(const EvictionHead& head, const EvictionCall& call) {
  if (head.positions.empty()) return absl::OkStatus();
  const PolicyNeeds needs = NeedsOf(call.policy);
  const bool missing =
      (needs.mass && head.mass.empty()) ||
      (needs.cumulative && head.mass.empty() && head.cumulative.empty());
  if (missing) {
    return Bad(head,
               absl::StrCat("no attention mass for ", head.positions.size(),
                            " candidates; ", DestructionPolicyName(call.policy),
                            " ranks by it and a node has no queries"));
  }
  const size_t rows = head.positions.size() + head.always_kept.size();
  if (needs.rows_alone || rows <= static_cast<size_t>(kMaxComparedRows)) {
    return absl::OkStatus();
  }
  return Bad(head,
             absl::StrCat(rows, " rows; ", DestructionPolicyName(call.policy),
                          " compares each with all others, at most ",
                          kMaxComparedRows));
}

absl::Status CheckHead(const EvictionHead& head, const EvictionCall& call) {
  FARKV_RETURN_IF_ERROR(
      CheckAscending(head, "positions", head.positions, call.num_tokens));
  FARKV_RETURN_IF_ERROR(
      CheckAscending(head, "always_kept", head.always_kept, call.num_tokens));
  FARKV_RETURN_IF_ERROR(CheckDisjoint(head));
  FARKV_RETURN_IF_ERROR(CheckOnePerCandidate(head, "masses", head.mass.size()));
  FARKV_RETURN_IF_ERROR(
      CheckOnePerCandidate(head, "cumulative sums", head.cumulative.size()));
  return CheckNeeds(head, call);
}

absl::Status CheckRowsTogether(const EvictionCall& call) {
  if (NeedsOf(call.policy).rows_alone || call.final_list) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      DestructionPolicyName(call.policy),
      " compares each row of a head with all others: rows ranked by several "
      "parties cannot be merged; it needs final_list and all rows of a head on "
      "one node, else the worker has to decide"));
}

absl::Status CheckNoHeadTwice(const std::vector<EvictionHead>& heads) {
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const EvictionHead& head : heads) {
    if (!seen.emplace(head.layer, head.kv_head).second) {
      return Bad(head, "is named twice");
    }
  }
  return absl::OkStatus();
}

template <typename T>
std::vector<T> Spread(const std::vector<T>& of_candidates,
                      const std::vector<uint8_t>& pinned) {
  std::vector<T> all;
  if (of_candidates.empty()) return all;
  all.reserve(pinned.size());
  size_t next = 0;
  for (const uint8_t is_pinned : pinned) {
    all.push_back(is_pinned != 0 ? T{0} : of_candidates[next++]);
  }
  return all;
}

}  // namespace

std::string HeadPrefix(const EvictionHead& head) {
  return absl::StrCat("layer ", head.layer, ", head ", head.kv_head, ": ");
}

int64_t EvictionCall::NumCandidates() const {
  int64_t count = 0;
  for (const EvictionHead& head : heads) {
    count += static_cast<int64_t>(head.positions.size());
  }
  return count;
}

absl::Status EvictionCall::Validate() const {
  FARKV_RETURN_IF_ERROR(ValidatePolicy(policy));
  FARKV_RETURN_IF_ERROR(
      CheckRange("num_tokens", num_tokens, 0, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(
      CheckRange("budget_tokens", num_kept, 0, kMaxPolicyTokens));
  if (heads.empty()) return absl::InvalidArgumentError("no heads to decide on");
  int64_t kept = 0;
  for (const EvictionHead& head : heads) {
    kept += static_cast<int64_t>(head.always_kept.size());
  }
  if (NumCandidates() > kMaxCandidates || kept > kMaxCandidates) {
    return absl::InvalidArgumentError(
        absl::StrCat(NumCandidates(), " candidates and ", kept,
                     " rows that are always kept, at most ", kMaxCandidates,
                     " of each in one call: send several"));
  }
  FARKV_RETURN_IF_ERROR(CheckRowsTogether(*this));
  for (const EvictionHead& head : heads) {
    FARKV_RETURN_IF_ERROR(CheckHead(head, *this));
  }
  return CheckNoHeadTwice(heads);
}

HeadRows HeadRows::Of(const EvictionHead& head) {
  HeadRows rows;
  rows.positions.resize(head.positions.size() + head.always_kept.size());
  std::merge(head.positions.begin(), head.positions.end(),
             head.always_kept.begin(), head.always_kept.end(),
             rows.positions.begin());
  rows.pinned.reserve(rows.positions.size());
  auto kept = head.always_kept.begin();
  for (const int64_t position : rows.positions) {
    const bool is_kept = kept != head.always_kept.end() && *kept == position;
    rows.pinned.push_back(is_kept ? 1 : 0);
    if (is_kept) ++kept;
  }
  rows.mass = Spread(head.mass, rows.pinned);
  rows.cumulative = Spread(head.cumulative, rows.pinned);
  return rows;
}

VectorsRead VectorsReadBy(const DestructionPolicy& policy) {
  const PolicyNeeds needs = NeedsOf(policy);
  return {needs.keys, needs.values, !needs.rows_alone};
}

absl::StatusOr<RankedHead> RankHead(const EvictionCall& call,
                                    const EvictionHead& head,
                                    const HeadRows& rows,
                                    const HeadVectors& keys,
                                    const HeadVectors& values) {
  const VectorsRead read = VectorsReadBy(call.policy);
  EvictionInput input;
  input.positions = rows.positions;
  input.num_tokens = call.num_tokens;
  input.num_kept = call.num_kept;
  input.pinned = rows.pinned;
  if (read.keys) input.keys = keys;
  if (read.values) input.values = values;
  input.mass = rows.mass;
  input.cumulative = rows.cumulative;
  input.draws = {call.seed, call.request, static_cast<uint64_t>(head.layer),
                 static_cast<uint64_t>(head.kv_head), call.event};
  RankedHead result;
  result.layer = head.layer;
  result.kv_head = head.kv_head;
  FARKV_ASSIGN_OR_RETURN(RankedRows ranked, RankRows(call.policy, input));
  if (call.final_list) {
    const auto decision = ChooseRows(ranked, call.num_kept);
    if (!decision.ok()) {
      return absl::Status(
          decision.status().code(),
          absl::StrCat(HeadPrefix(head), decision.status().message()));
    }
    result.decision = *decision;
    return result;
  }
  result.rows.reserve(head.positions.size());
  for (size_t i = 0; i < ranked.rows.size(); ++i) {
    if (rows.pinned[i] == 0) result.rows.push_back(ranked.rows[i]);
  }
  return result;
}

}  // namespace farkv

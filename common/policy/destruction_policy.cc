#include "common/policy/destruction_policy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

constexpr char kNone[] = "none";

using NamedPolicy = std::pair<std::string, DestructionPolicy>;

const std::vector<NamedPolicy>& Policies() {
  static const auto& policies =
      *new std::vector<NamedPolicy>{{"tiers", TiersPolicy{}},
                                    {"h2o", H2oPolicy{}},
                                    {"streaming-llm", StreamingLlmPolicy{}},
                                    {"snap-kv-prompt", SnapKvPolicy::Prompt()},
                                    {"snap-kv-rkv", SnapKvPolicy::Rkv()},
                                    {"snap-kv-vase", SnapKvPolicy::Vase()},
                                    {"rkv-official", RkvPolicy::Official()},
                                    {"rkv-mean", RkvPolicy::Mean()},
                                    {"cur-dkv", CurDkvPolicy{}},
                                    {"vase-attn-v", VaseAttnVPolicy{}},
                                    {"vase-dkv", VaseDkvPolicy{}},
                                    {"random", RandomPolicy{}},
                                    {"recency", RecencyPolicy{}}};
  return policies;
}

// Of two policies of one type: SnapKV and R-KV have several names.
bool SameVariant(const DestructionPolicy& a, const DestructionPolicy& b) {
  if (const auto* snap = std::get_if<SnapKvPolicy>(&a)) {
    return snap->window.scorer == std::get<SnapKvPolicy>(b).window.scorer;
  }
  if (const auto* rkv = std::get_if<RkvPolicy>(&a)) {
    return rkv->variant == std::get<RkvPolicy>(b).variant;
  }
  return true;
}

PolicyNeeds Needs(const TiersPolicy&) {
  return {.cumulative = true, .shared_by_heads = true};
}
PolicyNeeds Needs(const H2oPolicy&) { return {.cumulative = true}; }
PolicyNeeds Needs(const StreamingLlmPolicy&) {
  return {.shared_by_heads = true};
}
PolicyNeeds Needs(const SnapKvPolicy&) { return {.mass = true}; }
PolicyNeeds Needs(const RkvPolicy&) {
  return {.keys = true, .mass = true, .rows_alone = false};
}
PolicyNeeds Needs(const CurDkvPolicy&) {
  return {.keys = true, .values = true};
}
PolicyNeeds Needs(const VaseAttnVPolicy&) {
  return {.values = true, .mass = true};
}
PolicyNeeds Needs(const VaseDkvPolicy&) {
  return {.keys = true, .values = true};
}
PolicyNeeds Needs(const RandomPolicy& policy) {
  return {.shared_by_heads = policy.shared};
}
PolicyNeeds Needs(const RecencyPolicy&) { return {.shared_by_heads = true}; }

}  // namespace

absl::StatusOr<std::optional<DestructionPolicy>> ParseDestructionPolicy(
    absl::string_view name) {
  if (name == kNone) return std::nullopt;
  for (const auto& [known, policy] : Policies()) {
    if (name == known) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("eviction is \"", name, "\", must be one of ",
                   absl::StrJoin(DestructionPolicyNames(), ", ")));
}

std::string DestructionPolicyName(const DestructionPolicy& policy) {
  for (const auto& [name, known] : Policies()) {
    if (known.index() == policy.index() && SameVariant(known, policy)) {
      return name;
    }
  }
  return "unknown";
}

std::vector<std::string> DestructionPolicyNames() {
  std::vector<std::string> names = {kNone};
  for (const auto& [name, policy] : Policies()) names.push_back(name);
  return names;
}

PolicyNeeds NeedsOf(const DestructionPolicy& policy) {
  return std::visit([](const auto& p) { return Needs(p); }, policy);
}

absl::Status ValidatePolicy(const DestructionPolicy& policy) {
  return std::visit([](const auto& p) { return p.Validate(); }, policy);
}

bool IsDue(const DestructionPolicy& policy, const EventCounts& counts) {
  return std::visit([&](const auto& p) { return p.IsDue(counts); }, policy);
}

int64_t AlwaysKept(const DestructionPolicy& policy, int64_t room) {
  return std::visit([&](const auto& p) { return p.AlwaysKept(room); }, policy);
}

absl::Status CheckAdmission(const DestructionPolicy& policy,
                            int64_t prompt_tokens, int64_t budget) {
  const int64_t always =
      AlwaysKept(policy, std::max<int64_t>(0, budget - prompt_tokens));
  if (prompt_tokens + always < budget) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a budget of ", budget, " tokens cannot hold a protected prompt of ",
      prompt_tokens, ", ", always, " that always stay, and one more"));
}

absl::StatusOr<RankedRows> RankRows(const DestructionPolicy& policy,
                                    const EvictionInput& input) {
  return std::visit([&](const auto& p) { return p.Rank(input); }, policy);
}

int64_t NumByMeasure(const DestructionPolicy& policy,
                     const EvictionInput& input) {
  const auto* vase = std::get_if<VaseAttnVPolicy>(&policy);
  return vase == nullptr ? 0 : vase->NumByMeasure(input);
}

absl::StatusOr<EvictionDecision> DecideEviction(const DestructionPolicy& policy,
                                                const EvictionInput& input) {
  FARKV_ASSIGN_OR_RETURN(const RankedRows ranked, RankRows(policy, input));
  return ChooseRows(ranked, input.num_kept);
}

}  // namespace farkv

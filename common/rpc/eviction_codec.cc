#include "common/rpc/eviction_codec.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/rpc/codec_parts.h"

namespace farkv {
namespace {

using memory::v1::DecideEvictionsRequest;
using memory::v1::DecideEvictionsResponse;
using memory::v1::EvictionPolicy;
using memory::v1::EvictionSettings;

// The policy of a value, with its paper's settings.
struct NamedPolicy {
  EvictionPolicy value;
  const char* name;  // of ParseDestructionPolicy
};
constexpr NamedPolicy kPolicies[] = {
    {memory::v1::EVICTION_POLICY_TIERS, "tiers"},
    {memory::v1::EVICTION_POLICY_H2O, "h2o"},
    {memory::v1::EVICTION_POLICY_STREAMING_LLM, "streaming-llm"},
    {memory::v1::EVICTION_POLICY_SNAP_KV, "snap-kv-prompt"},
    {memory::v1::EVICTION_POLICY_SNAP_KV_RKV, "snap-kv-rkv"},
    {memory::v1::EVICTION_POLICY_SNAP_KV_VASE, "snap-kv-vase"},
    {memory::v1::EVICTION_POLICY_RKV, "rkv-official"},
    {memory::v1::EVICTION_POLICY_RKV_MEAN, "rkv-mean"},
    {memory::v1::EVICTION_POLICY_CUR_DKV, "cur-dkv"},
    {memory::v1::EVICTION_POLICY_VASE_ATTN_V, "vase-attn-v"},
    {memory::v1::EVICTION_POLICY_VASE_DKV, "vase-dkv"},
    {memory::v1::EVICTION_POLICY_RANDOM, "random"},
    {memory::v1::EVICTION_POLICY_RECENCY, "recency"}};

// Where a policy keeps the settings that a call carries; nullptr where it has
// none.
struct SettingsOf {
  int64_t* sinks = nullptr;
  int64_t* recent = nullptr;
  int32_t* window = nullptr;  // `recent` of policies that look at queries
  int32_t* lambda = nullptr;
  int32_t* threshold = nullptr;
  bool* shared = nullptr;
  int64_t* value_tokens = nullptr;
  int32_t* rank = nullptr;
};

SettingsOf Fields(TiersPolicy& p) {
  return {.sinks = &p.sinks, .recent = &p.recent};
}
SettingsOf Fields(H2oPolicy& p) { return {.recent = &p.recent}; }
SettingsOf Fields(StreamingLlmPolicy& p) { return {.sinks = &p.sinks}; }
SettingsOf Fields(SnapKvPolicy& p) { return {.window = &p.window.window}; }
SettingsOf Fields(RkvPolicy& p) {
  return {.window = &p.window.window,
          .lambda = &p.lambda,
          .threshold = &p.threshold};
}
SettingsOf Fields(CurDkvPolicy& p) {
  return {.sinks = &p.sinks, .recent = &p.buffer, .rank = &p.rank};
}
SettingsOf Fields(VaseAttnVPolicy& p) {
  return {.sinks = &p.sinks,
          .window = &p.window.window,
          .value_tokens = &p.value_tokens};
}
SettingsOf Fields(VaseDkvPolicy& p) {
  return {.sinks = &p.sinks, .recent = &p.buffer, .rank = &p.rank};
}
SettingsOf Fields(RandomPolicy& p) {
  return {.recent = &p.recent, .shared = &p.shared};
}
SettingsOf Fields(RecencyPolicy&) { return {}; }

SettingsOf FieldsOf(DestructionPolicy& policy) {
  return std::visit([](auto& p) { return Fields(p); }, policy);
}

absl::Status NoSuchSetting(const DestructionPolicy& policy, const char* field) {
  return absl::InvalidArgumentError(absl::StrCat(
      DestructionPolicyName(policy), " has no ", field, " to be set"));
}

template <typename T>
absl::Status Take(const DestructionPolicy& policy, const char* field,
                  bool is_set, T value, T* to) {
  if (!is_set) return absl::OkStatus();
  if (to == nullptr) return NoSuchSetting(policy, field);
  *to = value;
  return absl::OkStatus();
}

absl::Status TakeRecent(const DestructionPolicy& policy,
                        const EvictionSettings& settings,
                        const SettingsOf& to) {
  if (!settings.has_recent() || to.window == nullptr) {
    return Take(policy, "recent", settings.has_recent(), settings.recent(),
                to.recent);
  }
  FARKV_RETURN_IF_ERROR(CheckRange("recent", settings.recent(), 1,
                                   std::numeric_limits<int32_t>::max()));
  *to.window = static_cast<int32_t>(settings.recent());
  return absl::OkStatus();
}

absl::Status TakeSettings(const DecideEvictionsRequest& request,
                          DestructionPolicy& policy) {
  const SettingsOf to = FieldsOf(policy);
  const EvictionSettings& s = request.settings();
  FARKV_RETURN_IF_ERROR(
      Take(policy, "sinks", s.has_sinks(), s.sinks(), to.sinks));
  FARKV_RETURN_IF_ERROR(TakeRecent(policy, s, to));
  FARKV_RETURN_IF_ERROR(
      Take(policy, "lambda", s.has_lambda(), s.lambda(), to.lambda));
  FARKV_RETURN_IF_ERROR(Take(policy, "threshold", s.has_threshold(),
                             s.threshold(), to.threshold));
  FARKV_RETURN_IF_ERROR(Take(policy, "shared_draw", s.has_shared_draw(),
                             s.shared_draw(), to.shared));
  FARKV_RETURN_IF_ERROR(
      Take(policy, "protected_value_tokens",
           to.value_tokens != nullptr || request.protected_value_tokens() != 0,
           request.protected_value_tokens(), to.value_tokens));
  FARKV_RETURN_IF_ERROR(Take(policy, "projection_rank",
                             request.projection_rank() != 0,
                             request.projection_rank(), to.rank));
  return ValidatePolicy(policy);
}

void PutSettings(DestructionPolicy policy, DecideEvictionsRequest& request) {
  const SettingsOf from = FieldsOf(policy);
  EvictionSettings& s = *request.mutable_settings();
  if (from.sinks != nullptr) s.set_sinks(*from.sinks);
  if (from.recent != nullptr) s.set_recent(*from.recent);
  if (from.window != nullptr) s.set_recent(*from.window);
  if (from.lambda != nullptr) s.set_lambda(*from.lambda);
  if (from.threshold != nullptr) s.set_threshold(*from.threshold);
  if (from.shared != nullptr) s.set_shared_draw(*from.shared);
  if (from.value_tokens != nullptr) {
    request.set_protected_value_tokens(*from.value_tokens);
  }
  if (from.rank != nullptr) request.set_projection_rank(*from.rank);
}

EvictionPolicy PolicyToProto(const DestructionPolicy& policy) {
  const std::string name = DestructionPolicyName(policy);
  for (const NamedPolicy& known : kPolicies) {
    if (name == known.name) return known.value;
  }
  return memory::v1::EVICTION_POLICY_UNSPECIFIED;
}

absl::StatusOr<DestructionPolicy> ReadPolicy(
    const DecideEvictionsRequest& request) {
  for (const NamedPolicy& known : kPolicies) {
    if (request.policy() != known.value) continue;
    FARKV_ASSIGN_OR_RETURN(std::optional<DestructionPolicy> policy,
                           ParseDestructionPolicy(known.name));
    FARKV_RETURN_IF_ERROR(TakeSettings(request, *policy));
    return *policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("policy is ", static_cast<int>(request.policy()),
                   request.policy() == memory::v1::EVICTION_POLICY_UNSPECIFIED
                       ? ", unspecified; nothing is destroyed by default"
                       : ", unknown to this version"));
}

template <typename T>
std::vector<T> ToVector(const google::protobuf::RepeatedField<T>& field) {
  return std::vector<T>(field.begin(), field.end());
}

template <typename T>
void Put(const std::vector<T>& from, google::protobuf::RepeatedField<T>& to) {
  to.Add(from.begin(), from.end());
}

void RowToProto(const EvictionRow& row, DecideEvictionsResponse::Row& proto) {
  const auto key = static_cast<float>(row.key);
  proto.set_position(row.position);
  proto.set_measure(row.measure);
  proto.set_key(key);
  proto.set_pinned(row.pinned);
  // NaN is not the same as itself, and one is as broken as the other.
  if (row.key == row.key && static_cast<double>(key) != row.key) {
    proto.set_exact_key(row.key);
  }
}

EvictionRow RowFromProto(const DecideEvictionsResponse::Row& proto) {
  return {.position = proto.position(),
          .measure = proto.measure(),
          .key = proto.has_exact_key() ? proto.exact_key()
                                       : static_cast<double>(proto.key()),
          .pinned = proto.pinned()};
}

}  // namespace

DecideEvictionsRequest ToProto(const EvictionCall& call) {
  DecideEvictionsRequest proto;
  proto.set_session_id(call.session.ToBytes());
  proto.set_epoch(call.epoch.value);
  proto.set_sequence_number(call.sequence_number);
  proto.set_event(call.event);
  proto.set_policy(PolicyToProto(call.policy));
  PutSettings(call.policy, proto);
  proto.set_budget_tokens(call.num_kept);
  proto.set_num_tokens(call.num_tokens);
  proto.set_seed(call.seed);
  proto.set_request(call.request);
  proto.set_final_list(call.final_list);
  for (const EvictionHead& head : call.heads) {
    DecideEvictionsRequest::Head& to = *proto.add_heads();
    to.set_layer(head.layer);
    to.set_kv_head(head.kv_head);
    Put(head.positions, *to.mutable_positions());
    Put(head.mass, *to.mutable_mass());
    Put(head.cumulative, *to.mutable_cumulative());
    Put(head.always_kept, *to.mutable_always_kept());
  }
  return proto;
}

absl::StatusOr<EvictionCall> FromProto(const DecideEvictionsRequest& request) {
  EvictionCall call;
  FARKV_ASSIGN_OR_RETURN(call.session,
                         SessionId::FromBytes(request.session_id()));
  call.epoch = Epoch{request.epoch()};
  call.sequence_number = request.sequence_number();
  call.event = request.event();
  FARKV_ASSIGN_OR_RETURN(call.policy, ReadPolicy(request));
  call.num_kept = request.budget_tokens();
  call.num_tokens = request.num_tokens();
  call.seed = request.seed();
  call.request = request.request();
  call.final_list = request.final_list();
  int64_t candidates = 0;
  for (const auto& head : request.heads()) candidates += head.positions_size();
  FARKV_RETURN_IF_ERROR(CheckCount("candidates", candidates, kMaxCandidates));
  call.heads.reserve(static_cast<size_t>(request.heads_size()));
  for (const auto& head : request.heads()) {
    call.heads.push_back({.layer = head.layer(),
                          .kv_head = head.kv_head(),
                          .positions = ToVector(head.positions()),
                          .mass = ToVector(head.mass()),
                          .cumulative = ToVector(head.cumulative()),
                          .always_kept = ToVector(head.always_kept())});
  }
  return call;
}

DecideEvictionsResponse ToProto(const EvictionReply& reply) {
  DecideEvictionsResponse proto;
  proto.set_decision_id(reply.decision_id);
  for (const RankedHead& head : reply.heads) {
    DecideEvictionsResponse::Head& to = *proto.add_heads();
    to.set_layer(head.layer);
    to.set_kv_head(head.kv_head);
    for (const EvictionRow& row : head.rows) RowToProto(row, *to.add_rows());
    Put(head.decision.kept, *to.mutable_kept());
    to.set_non_finite(head.decision.num_non_finite);
  }
  return proto;
}

absl::StatusOr<EvictionReply> FromProto(
    const DecideEvictionsResponse& response) {
  EvictionReply reply;
  reply.decision_id = response.decision_id();
  int64_t rows = 0;
  for (const auto& head : response.heads()) rows += head.rows_size();
  FARKV_RETURN_IF_ERROR(CheckCount("ranked rows", rows, kMaxCandidates));
  for (const auto& head : response.heads()) {
    RankedHead& to = reply.heads.emplace_back();
    to.layer = head.layer();
    to.kv_head = head.kv_head();
    to.rows.reserve(static_cast<size_t>(head.rows_size()));
    for (const auto& row : head.rows()) to.rows.push_back(RowFromProto(row));
    to.decision.kept = ToVector(head.kept());
    to.decision.num_non_finite = head.non_finite();
  }
  return reply;
}

}  // namespace farkv

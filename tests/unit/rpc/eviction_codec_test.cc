#include "common/rpc/eviction_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace farkv {
namespace {

using memory::v1::DecideEvictionsRequest;
using ::testing::HasSubstr;

EvictionCall SomeCall(const DestructionPolicy& policy) {
  EvictionCall call;
  call.session = *SessionId::FromHex("00112233445566778899aabbccddeeff");
  call.epoch = Epoch{7};
  call.sequence_number = 4;
  call.event = 9;
  call.policy = policy;
  call.num_kept = 512;
  call.num_tokens = 1000;
  call.seed = ~uint64_t{0};
  call.request = 3;
  call.final_list = true;
  call.heads = {{.layer = 1,
                 .kv_head = 2,
                 .positions = {0, 5},
                 .mass = {0.5f, 0.25f},
                 .cumulative = {int64_t{1} << 60, -1},
                 .always_kept = {999}},
                {.layer = 2, .kv_head = 0, .positions = {7}, .mass = {1}}};
  return call;
}

std::string Refusal(const DecideEvictionsRequest& request) {
  const auto call = FromProto(request);
  EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(call.status().message());
}

TEST(EvictionCodecTest, EveryPolicyAndWhatItIsGivenSurviveTheRoundTrip) {
  for (const std::string& name : DestructionPolicyNames()) {
    const auto policy = ParseDestructionPolicy(name).value();
    if (!policy) continue;
    SCOPED_TRACE(name);
    const DecideEvictionsRequest request = ToProto(SomeCall(*policy));

    const auto back = FromProto(request);

    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(DestructionPolicyName(back->policy), name);
    EXPECT_EQ(back->session, SomeCall(*policy).session);
    EXPECT_EQ(back->heads[0].mass, (std::vector<float>{0.5f, 0.25f}));
    EXPECT_EQ(back->heads[0].cumulative,
              (std::vector<int64_t>{int64_t{1} << 60, -1}));
    EXPECT_EQ(back->heads[0].always_kept, (std::vector<int64_t>{999}));
    // The same message again, so nothing was lost.
    EXPECT_EQ(ToProto(*back).SerializeAsString(), request.SerializeAsString());
  }
}

TEST(EvictionCodecTest, SettingsReachThePolicyThatTheyAreOf) {
  const auto after = [](const DestructionPolicy& policy) {
    return FromProto(ToProto(SomeCall(policy))).value().policy;
  };
  const auto h2o = std::get<H2oPolicy>(after(H2oPolicy{.recent = 31}));
  const auto vase = std::get<VaseAttnVPolicy>(
      after(VaseAttnVPolicy{.sinks = 0, .value_tokens = 12}));
  RkvPolicy tuned = RkvPolicy::Mean();
  tuned.window.window = 32;
  tuned.lambda = 900;
  const auto rkv = std::get<RkvPolicy>(after(tuned));
  const auto dkv =
      std::get<CurDkvPolicy>(after(CurDkvPolicy{.buffer = 16, .rank = 7}));
  const auto random = std::get<RandomPolicy>(after(RandomPolicy{9, true}));

  EXPECT_EQ(h2o.recent, 31);
  EXPECT_EQ(vase.sinks, 0);
  EXPECT_EQ(vase.value_tokens, 12);
  EXPECT_EQ(rkv.window.window, 32);
  EXPECT_EQ(rkv.lambda, 900);
  EXPECT_EQ(rkv.variant, RkvVariant::kMean);
  EXPECT_EQ(dkv.buffer, 16);
  EXPECT_EQ(dkv.rank, 7);
  EXPECT_EQ(random.recent, 9);
  EXPECT_TRUE(random.shared);
}

TEST(EvictionCodecTest, AbsentSettingsAreThoseOfThePaper) {
  DecideEvictionsRequest request = ToProto(SomeCall(VaseDkvPolicy{.rank = 3}));
  request.clear_settings();
  request.clear_projection_rank();

  const auto policy =
      std::get<VaseDkvPolicy>(FromProto(request).value().policy);

  EXPECT_EQ(policy.rank, 20);
  EXPECT_EQ(policy.buffer, 64);
  EXPECT_EQ(policy.sinks, 4);
}

TEST(EvictionCodecTest, APolicyThatIsUnspecifiedOrUnknownIsRefused) {
  DecideEvictionsRequest request = ToProto(SomeCall(RandomPolicy{}));
  request.set_policy(memory::v1::EVICTION_POLICY_UNSPECIFIED);
  EXPECT_THAT(Refusal(request), HasSubstr("policy is 0, unspecified"));
  request.set_policy(static_cast<memory::v1::EvictionPolicy>(77));
  EXPECT_THAT(Refusal(request), HasSubstr("policy is 77, unknown"));
}

TEST(EvictionCodecTest, ASettingThatThePolicyDoesNotHaveIsRefused) {
  DecideEvictionsRequest request = ToProto(SomeCall(RecencyPolicy{}));
  request.mutable_settings()->set_sinks(4);
  EXPECT_THAT(Refusal(request), HasSubstr("recency has no sinks"));
  request = ToProto(SomeCall(SnapKvPolicy::Vase()));
  request.mutable_settings()->set_lambda(1);
  EXPECT_THAT(Refusal(request), HasSubstr("snap-kv-vase has no lambda"));
  request = ToProto(SomeCall(RandomPolicy{}));
  request.set_projection_rank(20);
  EXPECT_THAT(Refusal(request), HasSubstr("random has no projection_rank"));
  request.set_projection_rank(0);
  request.set_protected_value_tokens(1);
  EXPECT_THAT(Refusal(request), HasSubstr("has no protected_value_tokens"));
}

TEST(EvictionCodecTest, SettingsOutOfRangeAreNamed) {
  DecideEvictionsRequest request = ToProto(SomeCall(SnapKvPolicy::Vase()));
  request.mutable_settings()->set_recent(int64_t{1} << 40);
  EXPECT_THAT(Refusal(request), HasSubstr("recent is 1099511627776"));
  request = ToProto(SomeCall(VaseDkvPolicy{}));
  request.set_projection_rank(513);
  EXPECT_THAT(Refusal(request), HasSubstr("rank is 513"));
  request.set_session_id("short");
  EXPECT_THAT(Refusal(request), HasSubstr("16 bytes"));
}

TEST(EvictionCodecTest, MoreCandidatesThanOneCallTakesAreRefusedByNumber) {
  DecideEvictionsRequest request = ToProto(SomeCall(RandomPolicy{}));
  for (int64_t i = 0; i < kMaxCandidates; ++i) {
    request.mutable_heads(0)->add_positions(i);
  }
  EXPECT_THAT(Refusal(request), HasSubstr("candidates has 65539 items, at most "
                                          "65536"));
}

TEST(EvictionCodecTest, AnAnswerKeepsEveryBitOfItsKeys) {
  EvictionReply reply;
  reply.decision_id = 12;
  reply.heads = {
      {.layer = 1,
       .kv_head = 2,
       .rows = {{.position = 3, .measure = 2.5f, .key = 0.125, .pinned = true},
                {.position = 4,
                 .measure = 0,
                 .key = EvictionRow::kLastKey,
                 .pinned = false},
                {.position = 5,
                 .measure = std::nanf(""),
                 .key = static_cast<double>((int64_t{1} << 52) + 1),
                 .pinned = false}}},
      {.layer = 3, .kv_head = 0, .rows = {}, .decision = {{1, 2}, 4}}};
  const auto proto = ToProto(reply);

  const auto back = FromProto(proto);

  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->decision_id, 12u);
  const std::vector<EvictionRow>& rows = back->heads[0].rows;
  EXPECT_EQ(rows[0].key, 0.125);
  EXPECT_TRUE(rows[0].pinned);
  EXPECT_EQ(rows[1].key, EvictionRow::kLastKey);
  EXPECT_EQ(rows[2].key, static_cast<double>((int64_t{1} << 52) + 1));
  EXPECT_TRUE(std::isnan(rows[2].measure));
  EXPECT_EQ(back->heads[1].decision.kept, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(back->heads[1].decision.num_non_finite, 4);
  EXPECT_FALSE(proto.heads(0).rows(0).has_exact_key());
}

// Bytes of a message, some of them changed: every call that can be read is
// either refused or valid.
TEST(EvictionCodecTest, DamagedMessagesAreReadOrRefused) {
  std::mt19937_64 random(1);
  const std::string good =
      ToProto(SomeCall(VaseAttnVPolicy{})).SerializeAsString();
  int valid = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int changes = i % 3; changes >= 0; --changes) {
      const size_t at = random() % bytes.size();
      bytes[at] = static_cast<char>(random());
    }
    DecideEvictionsRequest request;
    if (!request.ParseFromString(bytes)) continue;
    const auto call = FromProto(request);
    const bool is_valid = call.ok() && call->Validate().ok();
    ++(is_valid ? valid : refused);
  }
  EXPECT_GT(valid, 100) << refused;
  EXPECT_GT(refused, 100) << valid;
}

}  // namespace
}  // namespace farkv

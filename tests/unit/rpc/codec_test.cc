#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/error_reason.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SessionId SomeSession() {
  return *SessionId::FromHex("00112233445566778899aabbccddeeff");
}

OpenSessionCall SomeOpen() {
  OpenSessionCall call;
  call.handshake = {1, 1, "AVX3+avx512bf16", "0.1.0"};
  call.session = SomeSession();
  call.tenant = "blue";
  call.worker_id = "w1";
  call.geometry = {4, 2, 64, DType::kBf16};
  call.bitwise = false;
  call.lease = absl::Seconds(30);
  call.continues_request = true;
  call.data_timeout = absl::Seconds(7);
  return call;
}

TEST(MemoryCodecTest, AnOpenCallSurvivesTheRoundTrip) {
  const OpenSessionCall call = SomeOpen();

  const auto back = FromProto(ToProto(call));

  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->session, call.session);
  EXPECT_EQ(back->tenant, "blue");
  EXPECT_EQ(back->worker_id, "w1");
  EXPECT_EQ(back->geometry, call.geometry);
  EXPECT_FALSE(back->bitwise);
  EXPECT_EQ(back->lease, call.lease);
  EXPECT_EQ(back->handshake.kernel_target, "AVX3+avx512bf16");
  EXPECT_TRUE(back->continues_request);
  EXPECT_EQ(back->data_timeout, absl::Seconds(7));
}

TEST(MemoryCodecTest, AnOpenCallThatDoesNotFitIsRefusedByField) {
  auto proto = ToProto(SomeOpen());
  proto.set_session_id("short");
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              HasSubstr("16 bytes"));
  proto = ToProto(SomeOpen());
  proto.mutable_geometry()->set_head_dim(17);
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              AllOf(HasSubstr("head_dim"), HasSubstr("17")));
  proto = ToProto(SomeOpen());
  proto.mutable_geometry()->set_dtype(static_cast<types::v1::DType>(257));
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              AllOf(HasSubstr("dtype"), HasSubstr("257")));
  proto = ToProto(SomeOpen());
  proto.mutable_lease()->set_seconds(-1);
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              HasSubstr("lease"));
}

TEST(MemoryCodecTest, APlanSurvivesTheRoundTrip) {
  TierPlanCall call;
  call.session = SomeSession();
  call.epoch = Epoch{7};
  call.sequence_number = 9;
  call.reserve = {{0, 1}, {3, 2}};
  call.tier_changes = {{{1, 1}, Tier::kT2, 8, {5, 6}}};
  call.evictions = {{{2, 0}, {1, 0}}};
  call.free = {{3, 3}};

  const auto back = FromProto(ToProto(call));

  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->reserve, call.reserve);
  EXPECT_EQ(back->free, call.free);
  EXPECT_EQ(back->tier_changes.front().exceptions,
            (std::vector<uint64_t>{5, 6}));
  EXPECT_EQ(back->evictions.front().live, (std::vector<uint64_t>{1, 0}));
  EXPECT_EQ(back->sequence_number, 9u);
}

TEST(MemoryCodecTest, APlansAnswerSaysWhetherTheNodeDrains) {
  TierPlanResult result;
  EXPECT_FALSE(FromProto(ToProto(result)).value().draining);
  result.draining = true;
  EXPECT_TRUE(FromProto(ToProto(result)).value().draining);
}

TEST(MemoryCodecTest, APlanOfTooManyItemsIsRefusedWithBothCounts) {
  TierPlanCall call;
  call.session = SomeSession();
  call.reserve.resize(kMaxPlanItems + 1);

  EXPECT_THAT(std::string(FromProto(ToProto(call)).status().message()),
              AllOf(HasSubstr("4097"), HasSubstr("4096")));
}

TEST(MemoryCodecTest, ANegativePageIsRefused) {
  TierPlanCall call;
  call.session = SomeSession();
  call.free = {{-1, 0}};

  EXPECT_FALSE(FromProto(ToProto(call)).ok());
}

TEST(StatusCodecTest, ReasonAndRetryHintCrossTheWire) {
  const absl::Status status =
      WithRetryAfter(WithReason(absl::ResourceExhaustedError("pool full"),
                                ErrorReason::kPoolFull),
                     absl::Milliseconds(250));

  const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));

  EXPECT_EQ(back.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(back.message(), "pool full");
  EXPECT_EQ(ReasonOf(back), ErrorReason::kPoolFull);
  EXPECT_EQ(RetryAfterOf(back), absl::Milliseconds(250));
}

TEST(StatusCodecTest, AForeignStatusKeepsCodeAndText) {
  const absl::Status back = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone", "not a detail\xff"));

  EXPECT_EQ(back.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(back.message(), "gone");
  EXPECT_EQ(ReasonOf(back), ErrorReason::kUnspecified);
}

TEST(ErrorReasonTest, NumbersAndNamesEqualTheProtos) {
  const auto* descriptor = types::v1::ErrorReason_descriptor();
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const int number = descriptor->value(i)->number();
    EXPECT_EQ(descriptor->value(i)->name(),
              std::string("ERROR_REASON_") +
                  ErrorReasonName(static_cast<ErrorReason>(number)));
  }
}

}  // namespace
}  // namespace farkv

// Sessions, leases, tokens.
#include "memory_node/directory/directory.h"

#include "absl/strings/str_cat.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class DirectoryTest : public DirectoryFixture {};

TEST_F(DirectoryTest, AGrantCarriesEpochStrideTokenAndTheLeaseAskedFor) {
  const auto grant = directory_.Open(OpenCall());

  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->epoch, Epoch{77});
  EXPECT_EQ(grant->lease, absl::Seconds(5));
  EXPECT_EQ(grant->page_stride, PageLayout::T1(kSmallGeometry).stride);
  EXPECT_EQ(grant->token.size(), 16u);
  EXPECT_EQ(grant->handshake.kernel_target, "TEST+none");
}

TEST_F(DirectoryTest, ALeaseIsCappedByTheNode) {
  OpenSessionCall call = OpenCall();
  call.lease = absl::Hours(1);

  EXPECT_EQ(directory_.Open(call).value().lease, absl::Seconds(10));
  const auto renewed =
      directory_.Renew(Epoch{77}, std::vector{TestSession(1)}, absl::Hours(1));
  EXPECT_EQ(renewed.value().renewals[0].lease, absl::Seconds(10));
}

TEST_F(DirectoryTest, AnotherProtocolVersionIsRefusedNamingBoth) {
  OpenSessionCall call = OpenCall();
  call.handshake.protocol_version = 9;

  const absl::Status status = directory_.Open(call).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kProtocolMismatch);
  EXPECT_THAT(status.ToString(),
              HasSubstr("is 1 on the node and 9 on the worker"));
}

TEST_F(DirectoryTest, AnotherKernelTargetIsRefusedUnderBitwiseOnly) {
  OpenSessionCall call = OpenCall();
  call.handshake.kernel_target = "OTHER";

  EXPECT_EQ(ReasonOf(directory_.Open(call).status()),
            ErrorReason::kKernelTargetMismatch);
  call.bitwise = false;
  EXPECT_TRUE(directory_.Open(call).ok());
}

TEST_F(DirectoryTest, ABadGeometryIsRefused) {
  OpenSessionCall call = OpenCall();
  call.geometry.head_dim = 17;

  EXPECT_EQ(ReasonOf(directory_.Open(call).status()),
            ErrorReason::kInvalidField);
}

TEST_F(DirectoryTest, OpeningAgainReturnsTheRunningSessionWithANewToken) {
  const SessionGrant first = Open();
  directory_.Apply(Plan(1, {{0, 0}})).value();

  const SessionGrant second = Open();

  EXPECT_NE(second.token, first.token);
  EXPECT_EQ(directory_.Describe(TestSession(1)).value().pages, 1u);
  EXPECT_FALSE(directory_.RedeemToken(first.token).ok());
  EXPECT_TRUE(directory_.RedeemToken(second.token).ok());
}

TEST_F(DirectoryTest, OpeningAgainWithAnotherGeometryIsRefused) {
  Open();
  OpenSessionCall call = OpenCall();
  call.geometry.num_layers = 4;

  const absl::Status status = directory_.Open(call).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kGeometryMismatch);
}

TEST_F(DirectoryTest, AnotherTenantCannotTakeASessionOver) {
  Open();
  OpenSessionCall call = OpenCall();
  call.tenant = "other";

  EXPECT_EQ(directory_.Open(call).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(DirectoryTest, TheNumberOfSessionsIsBounded) {
  DirectoryOptions options = Options();
  options.max_sessions = 1;
  Directory directory(options, pool_, clock_);
  ASSERT_TRUE(directory.Open(OpenCall(1)).ok());

  const absl::Status status = directory.Open(OpenCall(2)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfterOf(status).has_value());
}

TEST_F(DirectoryTest, ATokenOpensOneDataPlaneConnection) {
  const SessionGrant grant = Open();

  EXPECT_EQ(directory_.RedeemToken(grant.token).value().tenant, "tenant");
  EXPECT_EQ(directory_.RedeemToken(grant.token).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(directory_.RedeemToken("").status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(DirectoryTest, TheMapSocketAsksForTheSessionsOwnToken) {
  const SessionGrant one = Open(1);
  const SessionGrant two = Open(2);

  EXPECT_FALSE(directory_.RedeemToken(one.token).value().mapped);
  EXPECT_EQ(directory_.CheckToken(TestSession(1), one.token).value().tenant,
            "tenant");
  EXPECT_FALSE(directory_.CheckToken(TestSession(1), two.token).ok());
  // A connection that comes later is told that its session maps.
  EXPECT_TRUE(directory_.RedeemToken(Open(1).token).value().mapped);
  EXPECT_FALSE(directory_.RedeemToken(two.token).value().mapped);
  const SessionGrant last = Open(1);
  clock_.Advance(absl::Seconds(5));
  EXPECT_FALSE(directory_.CheckToken(TestSession(1), last.token).ok());
}

TEST_F(DirectoryTest, ASessionOpenedAgainSaysHowFarItsPlansGot) {
  const SessionGrant first = Open();
  EXPECT_FALSE(first.resumed);
  EXPECT_EQ(first.last_sequence_number, 0u);
  directory_.Apply(Plan(3, {{0, 0}})).value();

  const SessionGrant again = Open();

  EXPECT_TRUE(again.resumed);
  EXPECT_EQ(again.last_sequence_number, 3u);
  ASSERT_TRUE(directory_.Close(TestSession(1), Epoch{77}).ok());
  EXPECT_FALSE(Open().resumed);
}

TEST_F(DirectoryTest, AGeometryWhosePageFitsNoSlabIsRefusedNamingBoth) {
  OpenSessionCall call = OpenCall();
  call.geometry.head_dim = 512;
  call.geometry.num_kv_heads = 8;

  const absl::Status status = directory_.Open(call).status();

  EXPECT_EQ(ReasonOf(status), ErrorReason::kInvalidField);
  EXPECT_THAT(status.ToString(),
              HasSubstr(absl::StrCat(PageLayout::T1(call.geometry).stride)));
  EXPECT_THAT(status.ToString(),
              HasSubstr(absl::StrCat(PoolOptions().slab_bytes)));
}

TEST_F(DirectoryTest, AGeometryWhosePageFitsNoMessageIsRefused) {
  PagePoolOptions options;
  options.slab_bytes = size_t{128} << 20;
  options.capacity_bytes = options.slab_bytes;
  PagePool pool(options, AllocateHeapSlab, clock_);  // makes no slab yet
  Directory directory(Options(), pool, clock_);
  OpenSessionCall call = OpenCall();
  call.geometry = {.num_layers = 1,
                   .num_kv_heads = 256,
                   .head_dim = 512,
                   .dtype = DType::kF32};

  EXPECT_THAT(directory.Open(call).status().ToString(), HasSubstr("67108864"));
  call.geometry.num_kv_heads = 255;
  EXPECT_TRUE(directory.Open(call).ok());
}

TEST_F(DirectoryTest, AShorterRenewalDoesNotMoveTheEndOfALeaseBackwards) {
  Open();  // for 5 s
  const auto renewed =
      directory_.Renew(Epoch{77}, std::vector{TestSession(1)}, absl::Seconds(1))
          .value();
  EXPECT_EQ(renewed.renewals[0].lease, absl::Seconds(1));

  clock_.Advance(absl::Seconds(4));
  EXPECT_TRUE(directory_.CheckCaller(Caller()).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(ReasonOf(directory_.CheckCaller(Caller()).status()),
            ErrorReason::kLeaseExpired);
}

TEST_F(DirectoryTest, ARenewalMovesTheEndOfALease) {
  Open();
  clock_.Advance(absl::Seconds(4));
  const auto renewed = directory_.Renew(
      Epoch{77}, std::vector{TestSession(1), TestSession(9)}, absl::Seconds(5));
  clock_.Advance(absl::Seconds(4));

  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_TRUE(renewed->renewals[0].status.ok());
  EXPECT_EQ(ReasonOf(renewed->renewals[1].status), ErrorReason::kNotFound);
  EXPECT_TRUE(directory_.CheckCaller(Caller()).ok());
}

TEST_F(DirectoryTest, ALeaseIsOverAtItsEndWithoutAnySweep) {
  Open();
  clock_.Advance(absl::Seconds(5));

  EXPECT_EQ(ReasonOf(directory_.CheckCaller(Caller()).status()),
            ErrorReason::kLeaseExpired);
  const auto renewed = directory_.Renew(Epoch{77}, std::vector{TestSession(1)},
                                        absl::Seconds(5));
  EXPECT_EQ(ReasonOf(renewed.value().renewals[0].status),
            ErrorReason::kLeaseExpired);
  EXPECT_EQ(ReasonOf(directory_.Apply(Plan(1, {{0, 0}})).status()),
            ErrorReason::kLeaseExpired);
}

TEST_F(DirectoryTest, PagesOfAnExpiredSessionAreFreeAfterOneMoreLease) {
  Open(1);
  directory_.Apply(Plan(1, {{0, 0}, {1, 0}})).value();
  Open(2);
  clock_.Advance(absl::Seconds(4));
  directory_.Renew(Epoch{77}, std::vector{TestSession(2)}, absl::Seconds(9))
      .value();
  clock_.Advance(absl::Seconds(1));

  const Directory::SweepResult swept = directory_.Sweep();

  ASSERT_EQ(swept.revoked.size(), 1u);
  EXPECT_EQ(swept.revoked[0].id, TestSession(1));
  EXPECT_EQ(swept.next, clock_.Now() + absl::Seconds(5));
  EXPECT_EQ(pool_.stats().quarantined_pages, 2u);
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(directory_.Sweep().revoked.empty());
  EXPECT_EQ(pool_.stats().quarantined_pages, 0u);
  EXPECT_EQ(pool_.stats().used_pages, 0u);
}

TEST_F(DirectoryTest, ClosingFreesPagesAtOnceAndIsIdempotent) {
  Open();
  directory_.Apply(Plan(1, {{0, 0}, {1, 0}})).value();

  EXPECT_EQ(directory_.Close(TestSession(1), Epoch{77}).value(), 2u);
  EXPECT_EQ(directory_.Close(TestSession(1), Epoch{77}).value(), 0u);

  EXPECT_EQ(pool_.stats().used_pages + pool_.stats().quarantined_pages, 0u);
  EXPECT_EQ(directory_.stats().sessions, 0u);
}

TEST_F(DirectoryTest, AnotherEpochIsRefusedEverywhere) {
  Open();
  TierPlanCall plan = Plan(1, {{0, 0}});
  plan.epoch = Epoch{76};
  DataCaller caller = Caller();
  caller.epoch = Epoch{76};

  EXPECT_EQ(ReasonOf(directory_.Apply(plan).status()),
            ErrorReason::kStaleEpoch);
  EXPECT_EQ(ReasonOf(directory_.Close(TestSession(1), Epoch{76}).status()),
            ErrorReason::kStaleEpoch);
  EXPECT_EQ(
      ReasonOf(directory_.Renew(Epoch{76}, {}, absl::Seconds(1)).status()),
      ErrorReason::kStaleEpoch);
  EXPECT_EQ(ReasonOf(directory_.CheckCaller(caller).status()),
            ErrorReason::kStaleEpoch);
}

TEST_F(DirectoryTest, ADrainingNodeRefusesNewSessionsAndServesThoseThatRun) {
  Open(1);
  EXPECT_FALSE(directory_.Apply(Plan(1, {{0, 0}})).value().draining);
  directory_.SetDraining(true);

  EXPECT_EQ(ReasonOf(directory_.Open(OpenCall(2)).status()),
            ErrorReason::kDraining);
  EXPECT_TRUE(directory_.Open(OpenCall(1)).value().resumed);
  const TierPlanResult more = directory_.Apply(Plan(2, {{1, 0}})).value();
  EXPECT_EQ(more.reserved.size(), 1u);
  EXPECT_TRUE(more.draining);
  EXPECT_TRUE(directory_.Apply(Plan(3, {}, {{0, 0}})).ok());
  EXPECT_FALSE(directory_.WaitUntilEmpty(absl::ZeroDuration()));
  ASSERT_TRUE(directory_.Close(TestSession(1), Epoch{77}).ok());
  EXPECT_TRUE(directory_.WaitUntilEmpty(absl::ZeroDuration()));
  directory_.SetDraining(false);
  EXPECT_TRUE(directory_.Open(OpenCall(2)).ok());
}

TEST_F(DirectoryTest, ADrainingNodeTakesARequestThatRecovers) {
  Open(1);
  directory_.SetDraining(true);
  ASSERT_TRUE(directory_.Close(TestSession(1), Epoch{77}).ok());
  OpenSessionCall again = OpenCall(2);
  again.continues_request = true;

  EXPECT_TRUE(directory_.Open(again).ok());
  EXPECT_FALSE(directory_.WaitUntilEmpty(absl::ZeroDuration()));
}

TEST_F(DirectoryTest, SessionsAreListedInPages) {
  for (int number : {3, 1, 2}) Open(static_cast<uint8_t>(number));

  const auto first = directory_.List(SessionId(), 2);
  const auto rest = directory_.List(first.back().id, 2);

  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].id, TestSession(1));
  EXPECT_EQ(first[1].id, TestSession(2));
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].id, TestSession(3));
  EXPECT_EQ(rest[0].lease_remaining, absl::Seconds(5));
}

TEST_F(DirectoryTest, APageOfTheListDoesNotEndWithinAHandle) {
  OpenSessionCall twin = OpenCall(1);
  twin.session.bytes[15] = 9;
  ASSERT_TRUE(directory_.Open(twin).ok());
  for (int number : {1, 2}) Open(static_cast<uint8_t>(number));

  const auto first = directory_.List(SessionId(), 1);

  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].id, TestSession(1));
  EXPECT_EQ(first[1].id, twin.session);
}

TEST_F(DirectoryTest, AHandleNamesItsSessionUntilItFitsTwo) {
  Open(1);
  Open(2);
  const auto handle = SessionPattern::FromHex("01010101").value();
  EXPECT_EQ(directory_.Resolve(handle).value(), TestSession(1));
  OpenSessionCall twin = OpenCall(1);
  twin.session.bytes[15] = 9;
  ASSERT_TRUE(directory_.Open(twin).ok());

  const absl::Status both = directory_.Resolve(handle).status();
  const auto whole = SessionPattern::FromBytes(twin.session.ToBytes()).value();

  EXPECT_EQ(both.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(both.message()), ::testing::HasSubstr("01010101"));
  EXPECT_EQ(directory_.Resolve(whole).value(), twin.session);
  const auto nobody = SessionPattern::FromHex("07070707").value();
  EXPECT_EQ(directory_.Resolve(nobody).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace farkv

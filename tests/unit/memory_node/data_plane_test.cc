// What the data plane answers to each kind of message.
#include "common/base/endian.h"
#include "tests/unit/memory_node/data_plane_fixture.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;

TEST_F(DataPlaneTest, APeerThatConnectsAndSaysNothingIsClosedInTime) {
  const auto at_worker = [&](PeerId peer) {
    Request request;
    request.timeout = absl::Minutes(1);
    return worker_->Submit(peer, std::move(request), [](auto) {}).status();
  };
  const auto connect = [&] {
    const PeerId peer = worker_->Connect("node", port_).value();
    RunAll();
    return peer;
  };
  ASSERT_TRUE(Hello().ok());
  const PeerId silent = connect();
  clock_.Advance(absl::Seconds(1));
  connect();
  data_plane_.ShowGauges();
  EXPECT_EQ(Metric("farkv_node_unproven_peers 2"),
            "farkv_node_unproven_peers 2");

  connect();  // one too many
  EXPECT_EQ(at_worker(silent).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(data_plane_.CloseSilentPeers(), clock_.Now() + PeerLimits().hello);
  clock_.Advance(PeerLimits().hello);
  data_plane_.CloseSilentPeers();
  RunAll();

  data_plane_.ShowGauges();
  for (const char* line :
       {"farkv_node_unproven_peers 0",
        "farkv_node_closed_peers_total{reason=\"too_many\"} 1",
        "farkv_node_closed_peers_total{reason=\"no_hello\"} 2"}) {
    EXPECT_EQ(Metric(line), line);
  }
  EXPECT_EQ(data_plane_.peers().size(), 1u);
}

TEST_F(DataPlaneTest, APingIsAnsweredWithTheEpochAndTheRequestsFields) {
  const auto reply = Call(MessageType::kPingRequest, {}, 2);

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->header.type, MessageType::kPingReply);
  EXPECT_EQ(reply->header.epoch, Epoch{77});
  EXPECT_EQ(reply->header.session, TestSession(1));
  EXPECT_EQ(reply->header.layer, 2u);
  EXPECT_EQ(reply->header.step, 5u);
}

TEST_F(DataPlaneTest, APingGetsTheBytesThatItAsksForUpToABound) {
  const auto bytes_of_reply = [&](uint32_t asked) {
    std::vector<std::byte> body(sizeof(asked));
    StoreLe(body.data(), asked);
    return Call(MessageType::kPingRequest, std::move(body))->body.size();
  };
  EXPECT_EQ(bytes_of_reply(1000), 0u);  // no hello yet

  ASSERT_TRUE(Hello().ok());

  EXPECT_EQ(bytes_of_reply(1000), 1000u);
  EXPECT_EQ(bytes_of_reply(0), 0u);
  EXPECT_EQ(bytes_of_reply(~uint32_t{0}), 256u << 10);
  EXPECT_EQ(Call(MessageType::kPingRequest, ToBytes("odd"))->body.size(), 0u);
}

TEST_F(DataPlaneTest, WithoutAHelloNothingIsStoredOrFetched) {
  const auto stored = Call(MessageType::kStoreRequest, StoreBody({}));
  const auto fetched = Fetch(0, {});

  EXPECT_EQ(stored.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(fetched.status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(DataPlaneTest, AHelloNeedsAFreshTokenAndMayBeRepeated) {
  EXPECT_EQ(Call(MessageType::kHelloRequest, ToBytes("wrong")).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Hello().ok());
  EXPECT_TRUE(Hello().ok());
  EXPECT_THAT(Metric("farkv_node_rejected_peers_total 1"),
              "farkv_node_rejected_peers_total 1");
}

TEST_F(DataPlaneTest, AHelloOfAnotherEpochIsRefusedAndTellsThisOne) {
  epoch_ = Epoch{5};

  EXPECT_EQ(Hello().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DataPlaneTest, StoredRowsComeBackBitForBitWithTheirChecksums) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({1, 3});
  const std::vector<uint64_t> rows = {0x00f0, 0x8000000000000001};

  const auto reply = Fetch(1, {{3, generation, rows}});

  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_TRUE(CheckMessage(reply->header_bytes, reply->body.bytes()).ok());
  const auto decoded = DecodeFetchReply(reply->body.bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  KvGeometry on_the_wire = kSmallGeometry;
  on_the_wire.num_layers = 0;
  EXPECT_EQ(decoded->message.geometry, on_the_wire);
  ASSERT_EQ(decoded->message.items.size(), 1u);
  const FetchReplyItem& item = decoded->message.items[0];
  EXPECT_EQ(item.code, absl::StatusCode::kOk);
  EXPECT_EQ(item.generation, generation);
  EXPECT_EQ(item.tier, Tier::kT1);
  EXPECT_EQ(item.t2_bits, 0);
  EXPECT_EQ(item.row_crcs, CrcsOf(kSmallGeometry, content_, rows));
  EXPECT_EQ(std::vector<std::byte>(decoded->rows.begin(), decoded->rows.end()),
            PackRows(kSmallGeometry, content_, rows));
}

TEST_F(DataPlaneTest, AFetchAnswersEachPageForItself) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({0, 0});
  const Generation reserved = directory_.Apply(Plan(next_number_++, {{0, 1}}))
                                  .value()
                                  .reserved[0]
                                  .generation;

  const auto reply = Fetch(0, {{0, Generation{9}, {1, 1}},
                               {1, reserved, {1, 1}},
                               {0, generation, {1, 1}},
                               {2, Generation{1}, {1, 1}}});

  ASSERT_TRUE(reply.ok()) << reply.status();
  const auto decoded = DecodeFetchReply(reply->body.bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  std::vector<absl::StatusCode> codes;
  for (const auto& item : decoded->message.items) codes.push_back(item.code);
  EXPECT_THAT(codes,
              ElementsAre(absl::StatusCode::kFailedPrecondition,
                          absl::StatusCode::kNotFound, absl::StatusCode::kOk,
                          absl::StatusCode::kNotFound));
  EXPECT_EQ(decoded->rows.size(), 2 * kSmallGeometry.RowBytes());
}

TEST_F(DataPlaneTest, APageAskedForInAnotherTierIsRefusedForItself) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({0, 0});

  const auto reply = Fetch(0, {{0, generation, {1, 1}, Tier::kT2, 8},
                               {0, generation, {1, 1}},
                               {0, generation, {1, 1}, Tier::kT2, 4}});

  ASSERT_TRUE(reply.ok()) << reply.status();
  const auto decoded = DecodeFetchReply(reply->body.bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  std::vector<absl::StatusCode> codes;
  for (const auto& item : decoded->message.items) codes.push_back(item.code);
  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kFailedPrecondition,
                                 absl::StatusCode::kOk,
                                 absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(decoded->message.items[2].t2_bits, 4);
  EXPECT_EQ(decoded->rows.size(), 2 * kSmallGeometry.RowBytes());
}

TEST_F(DataPlaneTest, AStoreAnswersEachPageForItself) {
  ASSERT_TRUE(Hello().ok());
  const auto placed =
      directory_.Apply(Plan(next_number_++, {{0, 0}, {1, 0}})).value();

  const auto codes =
      Store(StoreBody({Item({0, 0}, Generation{9}, AllRows()),
                       Item({1, 0}, placed.reserved[1].generation, {1, 2}),
                       Item({2, 0}, Generation{1}, AllRows())}));

  EXPECT_THAT(codes,
              ElementsAre(absl::StatusCode::kFailedPrecondition,
                          absl::StatusCode::kOk, absl::StatusCode::kNotFound));
  EXPECT_EQ(directory_.stats().stored_pages, 1u);
  EXPECT_EQ(directory_.stats().live_rows, 2u);
}

TEST_F(DataPlaneTest, ARowWithAWrongChecksumIsRefusedAndMayBeSentAgain) {
  ASSERT_TRUE(Hello().ok());
  directory_.Apply(Plan(next_number_++, {{0, 0}})).value();
  std::vector<std::byte> body =
      StoreBody({Item({0, 0}, Generation{1}, AllRows())});
  body.back() ^= std::byte{1};

  EXPECT_THAT(Store(body), ElementsAre(absl::StatusCode::kDataLoss));
  EXPECT_EQ(directory_.stats().stored_pages, 0u);
  EXPECT_THAT(Metric("farkv_node_checksum_failures_total 1"),
              "farkv_node_checksum_failures_total 1");
  body.back() ^= std::byte{1};
  EXPECT_THAT(Store(body), ElementsAre(absl::StatusCode::kOk));
}

TEST_F(DataPlaneTest, ARepeatedStoreIsOkAndOtherRowsAreNot) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({0, 0});
  const TestPage other(kSmallGeometry, 8);
  StoreItem changed = Item({0, 0}, generation, AllRows());
  changed.row_crcs = CrcsOf(kSmallGeometry, other, AllRows());

  EXPECT_THAT(Store(StoreBody({Item({0, 0}, generation, AllRows())})),
              ElementsAre(absl::StatusCode::kOk));
  EXPECT_THAT(Store(StoreBody({changed})),
              ElementsAre(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(directory_.stats().stored_pages, 1u);
}

TEST_F(DataPlaneTest, ARepeatedStoreRepairsADamagedPage) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({0, 0});
  {
    auto page = directory_.PinStored(TestSession(1), {0, 0});
    ASSERT_TRUE(page.ok());
    page->pin.data()[PageLayout::T1(kSmallGeometry).header_bytes] ^=
        std::byte{1};
    EXPECT_FALSE(
        CheckPageRows(page->pin.data(), kSmallGeometry, AllRows()).ok());
  }

  EXPECT_THAT(Store(StoreBody({Item({0, 0}, generation, AllRows())})),
              ElementsAre(absl::StatusCode::kOk));

  auto page = directory_.PinStored(TestSession(1), {0, 0});
  EXPECT_TRUE(CheckPageRows(page->pin.data(), kSmallGeometry, AllRows()).ok());
}

TEST_F(DataPlaneTest, ADamagedRepeatDoesNotMakeAStoredPageWorse) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({0, 0});
  const auto stored_page = [this] {
    return directory_.PinStored(TestSession(1), {0, 0}).value();
  };
  stored_page().pin.data()[PageLayout::T1(kSmallGeometry).header_bytes] ^=
      std::byte{1};
  std::vector<uint64_t> intact = AllRows();
  intact[0] &= ~uint64_t{1};
  std::vector<std::byte> body =
      StoreBody({Item({0, 0}, generation, AllRows())});
  body.back() ^= std::byte{1};  // of the last row

  EXPECT_THAT(Store(body), ElementsAre(absl::StatusCode::kDataLoss));

  EXPECT_TRUE(
      CheckPageRows(stored_page().pin.data(), kSmallGeometry, intact).ok());
}

TEST_F(DataPlaneTest, RowsOfAnotherGeometryAreRefused) {
  ASSERT_TRUE(Hello().ok());
  StoreRequest request;
  request.geometry = {.num_layers = 0, .num_kv_heads = 1, .head_dim = 16};

  const auto reply =
      Call(MessageType::kStoreRequest, EncodeStoreRequest(request).value());

  EXPECT_EQ(reply.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DataPlaneTest, ABodyThatCannotBeReadIsRefused) {
  ASSERT_TRUE(Hello().ok());

  for (MessageType type :
       {MessageType::kStoreRequest, MessageType::kFetchRequest}) {
    EXPECT_EQ(Call(type, ToBytes("nonsense")).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(DataPlaneTest, AMessageWithAWrongChecksumGetsNoReplyAndIsCounted) {
  Incoming incoming;
  incoming.peer = PeerId{1};
  incoming.message.header.type = MessageType::kPingRequest;
  incoming.message.header_bytes = EncodeHeader(incoming.message.header, {});
  incoming.message.header_bytes[20] ^= std::byte{1};
  const uint64_t sent = node_->counters().bytes_sent;

  data_plane_.Handle(std::move(incoming));
  RunAll();

  EXPECT_EQ(node_->counters().bytes_sent, sent);
  EXPECT_THAT(Metric("farkv_node_dropped_messages_total 1"),
              "farkv_node_dropped_messages_total 1");
}

TEST_F(DataPlaneTest, ARequestOfALaterProgramIsUnimplementedAndNoOffence) {
  ASSERT_TRUE(Hello().ok());

  EXPECT_EQ(Call(static_cast<MessageType>(13), ToBytes("move")).status().code(),
            absl::StatusCode::kUnimplemented);

  EXPECT_TRUE(Call(MessageType::kPingRequest, {}).ok());
  EXPECT_EQ(data_plane_.peers().size(), 1u);
}

TEST_F(DataPlaneTest, AfterItsLeaseASessionReadsNothing) {
  ASSERT_TRUE(Hello().ok());
  const Generation generation = StoredPage({0, 0});
  clock_.Advance(absl::Seconds(5));

  EXPECT_EQ(Fetch(0, {{0, generation, {1, 1}}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(DataPlaneTest, APeerThatWasLostHasToSayHelloAgain) {
  ASSERT_TRUE(Hello().ok());
  EXPECT_EQ(data_plane_.peers().size(), 1u);

  worker_->ClosePeer(peer_);
  RunAll();

  EXPECT_EQ(data_plane_.peers().size(), 0u);
}

TEST_F(DataPlaneTest, APeerThatFallsSilentIsClosed) {
  EXPECT_EQ(data_plane_.CloseSilentPeers(), absl::InfiniteFuture());
  ASSERT_TRUE(Hello().ok());
  clock_.Advance(absl::Seconds(60));
  ASSERT_TRUE(Call(MessageType::kPingRequest, {}).ok());
  EXPECT_EQ(data_plane_.CloseSilentPeers(), clock_.Now() + absl::Seconds(90));
  clock_.Advance(absl::Seconds(90));

  EXPECT_EQ(data_plane_.CloseSilentPeers(), absl::InfiniteFuture());
  RunAll();

  EXPECT_TRUE(data_plane_.peers().empty());
  EXPECT_FALSE(Call(MessageType::kPingRequest, {}).ok());
}

}  // namespace
}  // namespace farkv

// The data plane over the loopback transport, every event stepped by the test.
#include "memory_node/data/data_plane.h"

#include <optional>

#include "common/base/endian.h"
#include "common/page/bodies.h"
#include "common/transport/loopback_transport.h"
#include "tests/testing/stepping_executor.h"
#include "tests/unit/memory_node/directory_fixture.h"
#include "tests/unit/memory_node/stored_rows.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> ToBytes(const std::string& text) {
  std::vector<std::byte> bytes;
  for (char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

class DataPlaneTest : public DirectoryFixture {
 protected:
  DataPlaneTest() {
    TransportOptions node;
    node.executor = &executor_;
    node.clock = &clock_;  // no operation expires
    node.on_request = [this](Incoming incoming) {
      data_plane_.Handle(std::move(incoming));
    };
    node.on_peer_connected = [this](PeerId peer) {
      data_plane_.PeerConnected(peer);
    };
    node.on_peer_lost = [this](PeerId peer, const absl::Status&) {
      data_plane_.PeerLost(peer);
    };
    node_ = network_.CreateTransport(std::move(node));
    data_plane_.Attach(node_.get());
    TransportOptions worker;
    worker.executor = &executor_;
    worker.clock = &clock_;
    worker_ = network_.CreateTransport(std::move(worker));
    port_ = node_->Listen("node", 0).value();
    peer_ = worker_->Connect("node", port_).value();
    grant_ = Open();
  }

  ~DataPlaneTest() override {
    worker_->Shutdown(absl::ZeroDuration());
    node_->Shutdown(absl::ZeroDuration());
    RunAll();
    EXPECT_EQ(pool_.stats().pins, 0u);
    EXPECT_EQ(data_plane_.reply_bytes(), 0u);
  }

  static DataPlaneOptions PlaneOptions() {
    DataPlaneOptions options;
    options.max_waiting_attends = 2;
    options.peers.max_unproven = 2;
    return options;
  }

  void RunAll() {
    while (network_.Step() || executor_.RunAll() > 0) {
    }
  }

  absl::StatusOr<Message> Call(MessageType type, std::vector<std::byte> body,
                               uint32_t layer = kNoLayer) {
    Request request;
    request.header.type = type;
    request.header.session = TestSession(1);
    request.header.layer = layer;
    request.header.epoch = epoch_;
    request.header.step = 5;
    request.body.push_back(BufferLease::Owning(std::move(body)));
    request.timeout = absl::Seconds(1);
    std::optional<absl::StatusOr<Message>> reply;
    auto submitted = worker_->Submit(
        peer_, std::move(request),
        [&reply](absl::StatusOr<Message> r) { reply = std::move(r); });
    if (!submitted.ok()) return submitted.status();
    RunAll();
    if (!reply.has_value()) return absl::DeadlineExceededError("no reply");
    return *std::move(reply);
  }
  absl::Status Hello() {
    return Call(MessageType::kHelloRequest, ToBytes(grant_.token)).status();
  }

  StoreItem Item(PageName page, Generation generation,
                 std::vector<uint64_t> rows) const {
    return {page.layer, page.page_index, generation, rows,
            CrcsOf(kSmallGeometry, content_, rows)};
  }
  std::vector<std::byte> StoreBody(const std::vector<StoreItem>& items) const {
    StoreRequest request;
    request.geometry = kSmallGeometry;
    request.geometry.num_layers = 0;
    request.items = items;
    std::vector<std::byte> body = EncodeStoreRequest(request).value();
    for (const StoreItem& item : items) {
      const auto packed = PackRows(kSmallGeometry, content_, item.live);
      body.insert(body.end(), packed.begin(), packed.end());
    }
    return body;
  }
  std::vector<absl::StatusCode> Store(std::vector<std::byte> body) {
    auto reply = Call(MessageType::kStoreRequest, std::move(body));
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (!reply.ok()) return {};
    EXPECT_TRUE(CheckMessage(reply->header_bytes, reply->body.bytes()).ok());
    return DecodeStoreReply(reply->body.bytes()).value();
  }
  // Reserves and stores all rows of one page.
  Generation StoredPage(PageName page) {
    const Generation generation = directory_.Apply(Plan(next_number_++, {page}))
                                      .value()
                                      .reserved[0]
                                      .generation;
    EXPECT_THAT(Store(StoreBody({Item(page, generation, AllRows())})),
                ElementsAre(absl::StatusCode::kOk));
    return generation;
  }
  absl::StatusOr<Message> Fetch(uint32_t layer,
                                const std::vector<FetchItem>& items) {
    return Call(MessageType::kFetchRequest,
                EncodeFetchRequest(items, 2).value(), layer);
  }
  std::string Metric(const std::string& line) const {
    const std::string text = metrics_.Render();
    return text.find(line) == std::string::npos ? text : line;
  }

  const TestPage content_{kSmallGeometry, 7};
  Metrics metrics_;
  DataMetrics data_metrics_{metrics_};
  ThreadPool pool_of_threads_{2};
  DataPlane data_plane_{PlaneOptions(), directory_, pool_of_threads_,
                        data_metrics_, clock_};
  SteppingExecutor executor_;
  LoopbackNetwork network_{LoopbackNetwork::Drive::kSteps};
  std::unique_ptr<Transport> node_, worker_;
  uint16_t port_ = 0;
  PeerId peer_;
  SessionGrant grant_;
  Epoch epoch_{77};
  uint64_t next_number_ = 1;
};

TEST_F(DataPlaneTest, APingDoesNotWaitBehindAnAttend) {
  SteppingExecutor attends;
  data_plane_.AttendOn(&attends);
  ASSERT_TRUE(Hello().ok());
  bool attended = false;
  Request request;
  request.header.type = MessageType::kAttendRequest;
  request.header.session = TestSession(1);
  request.header.epoch = epoch_;
  request.timeout = absl::Seconds(1);
  ASSERT_TRUE(
      worker_
          ->Submit(peer_, std::move(request),
                   [&](const absl::StatusOr<Message>&) { attended = true; })
          .ok());
  RunAll();
  EXPECT_TRUE(Call(MessageType::kPingRequest, {}).ok());
  EXPECT_FALSE(attended);

  EXPECT_EQ(attends.RunAll(), 1);
  RunAll();
  EXPECT_TRUE(attended);
}

// Attends that a test lets wait.
class WaitingAttendsTest : public DataPlaneTest {
 protected:
  WaitingAttendsTest() {
    data_plane_.AttendOn(&attends_);
    OpenSessionCall call = OpenCall();
    call.data_timeout = absl::Seconds(3);
    grant_ = directory_.Open(call).value();
  }
  ~WaitingAttendsTest() override {
    attends_.RunAll();
    RunAll();
  }

  void Attend() {
    Request request;
    request.header.type = MessageType::kAttendRequest;
    request.header.session = TestSession(1);
    request.header.epoch = epoch_;
    request.timeout = absl::Seconds(3);
    ASSERT_TRUE(worker_
                    ->Submit(peer_, std::move(request),
                             [&](const absl::StatusOr<Message>& reply) {
                               results_.push_back(reply.status().code());
                             })
                    .ok());
    RunAll();
  }

  SteppingExecutor attends_;
  std::vector<absl::StatusCode> results_;
};

// An empty request, so that INVALID_ARGUMENT means that it had its turn.
TEST_F(WaitingAttendsTest, AnAttendWhoseCallerHasGivenUpIsNotComputed) {
  ASSERT_TRUE(Hello().ok());
  Attend();
  clock_.Advance(absl::Seconds(2));
  Attend();
  clock_.Advance(absl::Seconds(1));
  RunAll();
  EXPECT_THAT(results_, ElementsAre(absl::StatusCode::kDeadlineExceeded));

  EXPECT_EQ(attends_.RunAll(), 2);
  RunAll();

  EXPECT_THAT(results_, ElementsAre(absl::StatusCode::kDeadlineExceeded,
                                    absl::StatusCode::kInvalidArgument));
  for (const char* line :
       {"farkv_node_attend_requests_total 1",
        "farkv_node_attend_failures_total{reason=\"DEADLINE_EXCEEDED\"} 1",
        "farkv_node_attend_failures_total{reason=\"INVALID_ARGUMENT\"} 1"}) {
    EXPECT_EQ(Metric(line), line);
  }
}

TEST_F(WaitingAttendsTest, NoMoreAttendsWaitThanTheBound) {
  ASSERT_TRUE(Hello().ok());
  for (int i = 0; i < 4; ++i) Attend();

  EXPECT_THAT(results_, ElementsAre(absl::StatusCode::kResourceExhausted,
                                    absl::StatusCode::kResourceExhausted));
  data_plane_.ShowGauges();
  EXPECT_EQ(Metric("farkv_node_waiting_attends 2"),
            "farkv_node_waiting_attends 2");

  EXPECT_EQ(attends_.RunAll(), 2);
  RunAll();
  Attend();
  EXPECT_EQ(results_.size(), 4u);  // there is room again
  data_plane_.ShowGauges();
  EXPECT_EQ(Metric("farkv_node_waiting_attends 1"),
            "farkv_node_waiting_attends 1");
}

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

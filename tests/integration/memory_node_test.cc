// A whole memory node, asked the way a worker and an operator ask it: control
// plane and admin over gRPC, data plane over loopback and over UCX, the map
// over its socket.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/async/thread_executor.h"
#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/session_handle.h"
#include "common/mapping/map_client.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "common/rpc/memory_client.h"
#include "common/transport/ucx/ucx_transport.h"
#include "farkv/admin/v1/admin_service.grpc.pb.h"
#include "farkv/memory/v1/memory_service.grpc.pb.h"
#include "kernels/stream.h"
#include "tests/integration/settled.h"
#include "tests/testing/in_process_node.h"
#include "tests/unit/memory_node/stored_rows.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr KvGeometry kGeometry{
    .num_layers = 2, .num_kv_heads = 2, .head_dim = 64};
constexpr absl::Duration kTimeout = absl::Seconds(10);
const std::vector<uint64_t> kAllRows = {~0ull, ~0ull};

enum class Wire { kLoopback, kUcx };

// Values between 0 and 1, which can be compressed.
TestPage Content() {
  TestPage page(kGeometry, 3);
  for (size_t i = 0; i < page.block.size() / 2; ++i) {
    const double value = ToUnit(SplitMix64At(3, i));
    StoreLe(page.block.data() + 2 * i, FloatToBf16(static_cast<float>(value)));
  }
  return page;
}

class MemoryNodeTest : public ::testing::TestWithParam<Wire> {
 protected:
  MemoryNodeTest() {
    std::filesystem::create_directories(map_dir_);
    NodeOptions options = InProcessNodeOptions("node-under-test");
    options.map_dir = map_dir_;
    options.t2_bytes = options.pool.slab_bytes;
    options.max_lease = absl::Seconds(20);
    options.config = {{"threads", "2"}};
    LoopbackNetwork* network =
        GetParam() == Wire::kLoopback ? &network_ : nullptr;
    auto node = StartInProcessNode(options, network);
    EXPECT_TRUE(node.ok()) << node.status();
    node_ = *std::move(node);
    const std::string address =
        absl::StrCat("127.0.0.1:", node_->ports().listen);
    client_ = MemoryClient::Create(address, {}).value();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    admin_ = admin::v1::AdminService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", node_->ports().admin),
                            grpc::InsecureChannelCredentials()));
    TransportOptions transport;
    transport.executor = &executor_;
    transport_ = network == nullptr
                     ? CreateUcxTransport(std::move(transport), {}).value()
                     : network->CreateTransport(std::move(transport));
  }

  ~MemoryNodeTest() override {
    transport_->Shutdown(absl::Seconds(1));
    const TransportCounters counters = transport_->counters();
    EXPECT_EQ(counters.submitted, counters.completed);
    EXPECT_EQ(counters.open_operations, 0u);
    // A test may have closed it itself.
    client_->CloseSession(session_, node_->epoch(), 1000, kTimeout)
        .IgnoreError();
    testing::ExpectSettled(
        [this] { return testing::DebtsOfNode(node_->ports().metrics); },
        nullptr);
    node_.reset();
    EXPECT_FALSE(std::filesystem::exists(map_dir_ + "/node-under-test.sock"));
    std::filesystem::remove_all(map_dir_);
  }

  static OpenSessionCall OpenCall(SessionId session, absl::Duration lease) {
    OpenSessionCall call;
    call.handshake.page_format_version = kPageFormatVersion;
    call.handshake.kernel_target = KernelTarget();
    call.session = session;
    call.tenant = "tenant";
    call.worker_id = "worker";
    call.geometry = kGeometry;
    call.lease = lease;
    return call;
  }
  SessionGrant Open(absl::Duration lease = absl::Seconds(15)) {
    auto grant = client_->OpenSession(OpenCall(session_, lease), kTimeout);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.value_or(SessionGrant());
  }
  void Connect(const SessionGrant& grant) {
    epoch_ = grant.epoch;
    peer_ = transport_->Connect(grant.data_host, grant.data_port).value();
    std::vector<std::byte> token;
    for (char c : grant.token) token.push_back(static_cast<std::byte>(c));
    EXPECT_TRUE(Call(MessageType::kHelloRequest, std::move(token)).ok());
  }
  absl::StatusOr<Message> Call(MessageType type, std::vector<std::byte> body,
                               uint32_t layer = kNoLayer) {
    Request request;
    request.header.type = type;
    request.header.session = session_;
    request.header.layer = layer;
    request.header.epoch = epoch_;
    request.body.push_back(BufferLease::Owning(std::move(body)));
    request.timeout = kTimeout;
    absl::Notification done;
    absl::StatusOr<Message> result;
    auto submitted = transport_->Submit(peer_, std::move(request),
                                        [&](absl::StatusOr<Message> reply) {
                                          result = std::move(reply);
                                          done.Notify();
                                        });
    if (!submitted.ok()) return submitted.status();
    done.WaitForNotification();
    return result;
  }
  TierPlanResult Reserve(uint64_t number, std::vector<PageName> pages) {
    TierPlanCall call;
    call.reserve = std::move(pages);
    return Apply(number, std::move(call));
  }
  TierPlanResult Apply(uint64_t number, TierPlanCall call) {
    call.session = session_;
    call.epoch = epoch_;
    call.sequence_number = number;
    auto result = client_->ApplyTierPlan(call, kTimeout);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(TierPlanResult());
  }
  std::vector<absl::StatusCode> Store(
      const std::vector<PagePlacement>& placements) {
    StoreRequest request;
    request.geometry = kGeometry;
    request.geometry.num_layers = 0;
    std::vector<std::byte> rows;
    for (const PagePlacement& placement : placements) {
      request.items.push_back({placement.page.layer, placement.page.page_index,
                               placement.generation, kAllRows,
                               CrcsOf(kGeometry, content_, kAllRows)});
      const auto packed = PackRows(kGeometry, content_, kAllRows);
      rows.insert(rows.end(), packed.begin(), packed.end());
    }
    std::vector<std::byte> body = EncodeStoreRequest(request).value();
    body.insert(body.end(), rows.begin(), rows.end());
    auto reply = Call(MessageType::kStoreRequest, std::move(body));
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (!reply.ok()) return {};
    return DecodeStoreReply(reply->body.bytes()).value();
  }

  const SessionId session_ = SessionId::Random();
  const TestPage content_ = Content();
  const std::string map_dir_ =
      absl::StrCat(::testing::TempDir(), "/map-", getpid());
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  std::unique_ptr<Node> node_;
  std::unique_ptr<MemoryClient> client_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<admin::v1::AdminService::Stub> admin_;
  ThreadExecutor executor_{2};
  std::unique_ptr<Transport> transport_;
  PeerId peer_;
  Epoch epoch_;
};

INSTANTIATE_TEST_SUITE_P(Wires, MemoryNodeTest,
                         ::testing::Values(Wire::kLoopback, Wire::kUcx),
                         [](const auto& wire) {
                           return wire.param == Wire::kLoopback ? "Loopback"
                                                                : "Ucx";
                         });

TEST_P(MemoryNodeTest, RowsGoOutAndComeBackAndThePoolIsEmptyAfterwards) {
  Connect(Open());
  const TierPlanResult placed = Reserve(1, {{0, 0}, {1, 0}});

  EXPECT_THAT(Store(placed.reserved),
              ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kOk));
  const std::vector<uint64_t> rows = {0xff00ff, 1ull << 63};
  const FetchItem wanted{0, placed.reserved[1].generation, rows};
  auto reply = Call(MessageType::kFetchRequest,
                    EncodeFetchRequest({&wanted, 1}, 2).value(), 1);

  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_TRUE(CheckMessage(reply->header_bytes, reply->body.bytes()).ok());
  const auto fetched = DecodeFetchReply(reply->body.bytes()).value();
  EXPECT_EQ(fetched.message.items[0].row_crcs,
            CrcsOf(kGeometry, content_, rows));
  EXPECT_EQ(std::vector<std::byte>(fetched.rows.begin(), fetched.rows.end()),
            PackRows(kGeometry, content_, rows));
  EXPECT_EQ(client_->CloseSession(session_, epoch_, 2, kTimeout).value(), 2u);
  EXPECT_EQ(node_->pool().stats().used_pages, 0u);
  EXPECT_EQ(node_->pool().stats().quarantined_pages, 0u);
}

TEST_P(MemoryNodeTest, AMappedReaderSeesThePagesAndOnlyWithItsToken) {
  const SessionGrant grant = Open();
  Connect(grant);
  const PagePlacement placed = Reserve(1, {{0, 0}}).reserved[0];
  Store({placed});
  MapClient map(absl::StrCat(map_dir_, "/", grant.map_socket), kTimeout);

  EXPECT_FALSE(map.Fetch({session_, "wrong", placed.slab_id}).ok());
  auto slab = map.Fetch({session_, grant.token, placed.slab_id});

  ASSERT_TRUE(slab.ok()) << slab.status();
  const std::byte* page = (*slab)->base() + placed.slab_offset;
  EXPECT_EQ(LoadPageGeneration(page), placed.generation);
  EXPECT_TRUE(
      CheckPageHeader(page, kGeometry,
                      {.session = session_, .generation = placed.generation})
          .ok());
  EXPECT_TRUE(CheckPageRows(page, kGeometry, kAllRows).ok());
}

TEST_P(MemoryNodeTest, ACompressedPageIsMappedFetchedVerifiedAndShown) {
  const SessionGrant grant = Open();
  Connect(grant);
  Store(Reserve(1, {{0, 0}, {1, 0}}).reserved);
  TierPlanCall plan;
  plan.tier_changes = {{{1, 0}, Tier::kT2, 8, {0xf, 0xf}}};

  const PagePlacement moved = Apply(2, plan).moved.at(0);

  ASSERT_TRUE(moved.status.ok()) << moved.status;
  EXPECT_EQ(moved.tier, Tier::kT2);
  MapClient map(absl::StrCat(map_dir_, "/", grant.map_socket), kTimeout);
  auto slab = map.Fetch({session_, grant.token, moved.slab_id});
  ASSERT_TRUE(slab.ok()) << slab.status();
  const std::byte* page = (*slab)->base() + moved.slab_offset;
  const PageIdentity identity{session_, 1, 0, moved.generation, Tier::kT2, 8};
  EXPECT_TRUE(CheckPageHeader(page, kGeometry, identity).ok());
  EXPECT_TRUE(CheckT2Heads(page, kGeometry, 8).ok());
  const FetchItem wanted{0, moved.generation, {0, 1}, Tier::kT2, 8};
  auto reply = Call(MessageType::kFetchRequest,
                    EncodeFetchRequest({&wanted, 1}, 2).value(), 1);
  ASSERT_TRUE(reply.ok()) << reply.status();
  const auto fetched = DecodeFetchReply(reply->body.bytes()).value();
  const size_t part = T2HeadLayout::Of(kGeometry, 8).head_bytes;
  ASSERT_EQ(fetched.rows.size(), part);
  EXPECT_EQ(std::memcmp(fetched.rows.data(),
                        page + PageLayout::T2(kGeometry, 8).header_bytes + part,
                        part),
            0);
  grpc::ClientContext verify, pools;
  admin::v1::VerifyResponse verified;
  ASSERT_TRUE(admin_->Verify(&verify, {}, &verified).ok());
  EXPECT_EQ(verified.pages_checked(), 2u);
  EXPECT_EQ(verified.mismatches(), 0u);
  admin::v1::ListPoolsResponse shown;
  ASSERT_TRUE(admin_->ListPools(&pools, {}, &shown).ok());
  ASSERT_EQ(shown.pools_size(), 2);
  EXPECT_EQ(shown.pools(1).tier(), types::v1::TIER_T2);
  EXPECT_EQ(shown.pools(1).used_pages(), 1u);
  EXPECT_EQ(client_->CloseSession(session_, epoch_, 3, kTimeout).value(), 2u);
  EXPECT_EQ(node_->pool().stats().used_pages, 0u);
  EXPECT_EQ(node_->pool().stats().quarantined_pages, 0u);
  EXPECT_EQ(node_->t2_pool()->stats().used_pages, 0u);
}

TEST_P(MemoryNodeTest, OperatorsSeeProcessPoolSessionsPeersAndTierMap) {
  const SessionGrant grant = Open();
  Connect(grant);
  const std::vector<PagePlacement> placed =
      Reserve(1, {{0, 0}, {1, 0}}).reserved;
  Store(placed);
  const auto ask = [this](auto method, auto request, auto response) {
    grpc::ClientContext context;
    const grpc::Status status =
        (admin_.get()->*method)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  using Stub = admin::v1::AdminService::Stub;

  const auto process = ask(&Stub::GetProcess, admin::v1::GetProcessRequest(),
                           admin::v1::GetProcessResponse());
  EXPECT_EQ(process.kind(), admin::v1::PROCESS_KIND_MEMORY_NODE);
  EXPECT_EQ(process.id(), "node-under-test");
  EXPECT_EQ(process.sessions(), 1);
  EXPECT_EQ(process.config().at("threads"), "2");
  const auto pools = ask(&Stub::ListPools, admin::v1::ListPoolsRequest(),
                         admin::v1::ListPoolsResponse());
  EXPECT_EQ(pools.pools(0).used_pages(), 2u);
  const auto sessions =
      ask(&Stub::ListSessions, admin::v1::ListSessionsRequest(),
          admin::v1::ListSessionsResponse());
  EXPECT_EQ(sessions.sessions(0).stored_pages(), 2u);
  const auto only_peer = [&] {
    const auto peers = ask(&Stub::ListPeers, admin::v1::ListPeersRequest(),
                           admin::v1::ListPeersResponse());
    EXPECT_EQ(peers.peers_size(), 1);
    return peers.peers(0);
  };
  EXPECT_EQ(only_peer().id(), "worker");
  EXPECT_EQ(only_peer().transport(),
            GetParam() == Wire::kUcx ? "tcp" : "loopback");
  EXPECT_GT(only_peer().bytes_received(),
            2 * kGeometry.BlockBytes(kPageTokens));
  EXPECT_GT(only_peer().bytes_sent(), 0u);
  MapClient map(absl::StrCat(map_dir_, "/", grant.map_socket), kTimeout);
  ASSERT_TRUE(map.Fetch({session_, grant.token, placed[0].slab_id}).ok());
  EXPECT_EQ(only_peer().transport(), "map");
  admin::v1::GetTierMapRequest of_session;
  of_session.set_sequence(SessionHandle(session_));
  const auto tiers =
      ask(&Stub::GetTierMap, of_session, admin::v1::GetTierMapResponse());
  EXPECT_EQ(tiers.pages(0).tiers(), std::string(64, '1'));
}

TEST_P(MemoryNodeTest, VerifyFindsABitThatFlipped) {
  Connect(Open());
  Store(Reserve(1, {{0, 0}, {1, 0}}).reserved);
  node_->directory().PinStored(session_, {1, 0}).value().pin.data()[4000] ^=
      std::byte{1};

  grpc::ClientContext context;
  admin::v1::VerifyResponse response;
  ASSERT_TRUE(admin_->Verify(&context, {}, &response).ok());

  EXPECT_EQ(response.pages_checked(), 2u);
  EXPECT_EQ(response.rows_checked(), 2u * 2 * 64);
  EXPECT_EQ(response.mismatches(), 1u);
}

TEST_P(MemoryNodeTest, CallsThatDoNotApplyNameTheKindOrThemselves) {
  grpc::ClientContext context;
  admin::v1::ListSequencesResponse sequences;
  const grpc::Status worker_only =
      admin_->ListSequences(&context, {}, &sequences);

  EXPECT_EQ(worker_only.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(worker_only.error_message(), HasSubstr("memory node"));
}

TEST_P(MemoryNodeTest, ADecisionIsThatOfWhoeverHasTheRowsAndIsLogged) {
  Connect(Open());
  Store(Reserve(1, {{1, 0}}).reserved);
  EvictionCall call;
  call.session = session_;
  call.epoch = epoch_;
  call.event = 6;
  call.policy = VaseDkvPolicy{.buffer = 8};
  call.num_kept = 24;
  call.num_tokens = 64;
  call.seed = 11;
  call.final_list = true;
  EvictionHead& head = call.heads.emplace_back();
  head.layer = 1;
  head.kv_head = 1;
  EvictionInput input;
  std::vector<const std::byte*> keys, values;
  for (int64_t p = 0; p < 64; ++p) {
    head.positions.push_back(p);
    const auto slot = static_cast<size_t>(p);
    keys.push_back(content_.Key(kGeometry, 1, slot).data());
    values.push_back(content_.Value(kGeometry, 1, slot).data());
  }
  input.positions = head.positions;
  input.num_tokens = 64;
  input.num_kept = 24;
  input.keys = {keys, kGeometry.head_dim, kGeometry.dtype};
  input.values = {values, kGeometry.head_dim, kGeometry.dtype};
  input.draws = {.seed = 11, .layer = 1, .kv_head = 1, .event = 6};

  const auto beside = DecideEviction(call.policy, input);
  const auto reply = client_->DecideEvictions(call, kTimeout);
  head.positions.back() = 65;
  call.num_tokens = 66;
  const auto refused = client_->DecideEvictions(call, kTimeout);
  grpc::ClientContext context;
  admin::v1::ListEvictionsResponse log;
  ASSERT_TRUE(admin_->ListEvictions(&context, {}, &log).ok());

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->heads[0].decision.kept, beside.value().kept);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("position 65 is not stored here"));
  ASSERT_EQ(log.decisions_size(), 1);
  EXPECT_EQ(log.decisions(0).decision_id(), reply->decision_id);
  EXPECT_EQ(log.decisions(0).session_id(), SessionHandleBytes(session_));
  EXPECT_EQ(log.decisions(0).policy(), "vase-dkv");
  EXPECT_EQ(log.decisions(0).candidates(), 64);
  EXPECT_EQ(log.decisions(0).kept(), 24);
  EXPECT_TRUE(log.decisions(0).can_be_replayed());
  grpc::ClientContext replay_context, unknown_context;
  admin::v1::ReplayEvictionRequest asked;
  admin::v1::ReplayEvictionResponse replay;
  asked.set_decision_id(reply->decision_id);
  const auto replayed = admin_->ReplayEviction(&replay_context, asked, &replay);
  ASSERT_TRUE(replayed.ok()) << replayed.error_message();
  EXPECT_TRUE(replay.same());
  EXPECT_EQ(replay.digest(), log.decisions(0).digest());
  asked.set_decision_id(reply->decision_id + 1);
  EXPECT_EQ(
      admin_->ReplayEviction(&unknown_context, asked, &replay).error_code(),
      grpc::StatusCode::NOT_FOUND);
}

TEST_P(MemoryNodeTest, AWatcherHearsOfDrainAndOfLeasesThatRanOut) {
  auto stub = memory::v1::MemoryNodeService::NewStub(channel_);
  grpc::ClientContext context;
  memory::v1::WatchNodeRequest request;
  request.set_tenant("tenant");
  auto stream = stub->WatchNode(&context, request);
  memory::v1::WatchNodeResponse event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.epoch(), node_->epoch().value);
  EXPECT_FALSE(event.draining());

  Open(absl::Milliseconds(50));
  bool revoked = false;
  while (!revoked && stream->Read(&event)) {
    revoked = event.revoked_session_ids_size() == 1;
  }
  ASSERT_TRUE(revoked);
  EXPECT_EQ(event.revoked_session_ids(0), SessionHandleBytes(session_));
  node_->Drain();
  while (!event.draining() && stream->Read(&event)) {
  }
  EXPECT_TRUE(event.draining());
  context.TryCancel();
  stream->Finish();
}

TEST_P(MemoryNodeTest, ADrainStreamEndsWithTheLastSession) {
  const SessionGrant grant = Open();
  admin::v1::DrainRequest request;
  request.set_drain(true);
  grpc::ClientContext context;
  auto stream = admin_->Drain(&context, request);
  admin::v1::DrainResponse progress;
  ASSERT_TRUE(stream->Read(&progress));
  EXPECT_EQ(progress.sessions_left(), 1);
  EXPECT_FALSE(progress.done());
  EXPECT_TRUE(absl::IsUnavailable(
      client_
          ->OpenSession(OpenCall(SessionId::Random(), absl::Seconds(1)),
                        kTimeout)
          .status()));

  ASSERT_TRUE(client_->CloseSession(session_, grant.epoch, 1, kTimeout).ok());
  while (!progress.done() && stream->Read(&progress)) {
  }

  EXPECT_TRUE(progress.done());
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(NodeStartTest, ANodeThatDoesNotServeYetIsAliveAndOpensNoSession) {
  NodeOptions options = InProcessNodeOptions("starting");
  ASSERT_TRUE(options.Finish().ok());
  LoopbackNetwork network(LoopbackNetwork::Drive::kThread);
  auto node = Node::Start(
      options,
      [&](TransportOptions transport,
          Directory&) -> absl::StatusOr<std::unique_ptr<Transport>> {
        return network.CreateTransport(std::move(transport));
      });
  ASSERT_TRUE(node.ok()) << node.status();
  const NodePorts& ports = (*node)->ports();
  const auto client =
      MemoryClient::Create(absl::StrCat("127.0.0.1:", ports.listen), {})
          .value();
  OpenSessionCall call;
  call.handshake.page_format_version = kPageFormatVersion;
  call.handshake.kernel_target = KernelTarget();
  call.session = SessionId::Random();
  call.tenant = "tenant";
  call.worker_id = "worker";
  call.geometry = kGeometry;
  call.lease = absl::Seconds(1);

  const absl::Status early = client->OpenSession(call, kTimeout).status();

  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(early.ToString(), HasSubstr("of 16MiB of its pool"));
  EXPECT_THAT(testing::HttpGet(ports.metrics, "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(testing::HttpGet(ports.metrics, "/readyz"), HasSubstr("503"));
  ASSERT_TRUE((*node)->BeginServing().ok());
  EXPECT_THAT(testing::HttpGet(ports.metrics, "/readyz"), HasSubstr("200 OK"));
  EXPECT_TRUE(client->OpenSession(call, kTimeout).ok());
}

}  // namespace
}  // namespace farkv

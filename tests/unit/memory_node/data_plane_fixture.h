// A data plane over the loopback transport, every event stepped by the test.
#ifndef FARKV_TESTS_UNIT_MEMORY_NODE_DATA_PLANE_FIXTURE_H_
#define FARKV_TESTS_UNIT_MEMORY_NODE_DATA_PLANE_FIXTURE_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/page/bodies.h"
#include "common/transport/loopback_transport.h"
#include "memory_node/data/data_plane.h"
#include "tests/testing/stepping_executor.h"
#include "tests/unit/memory_node/directory_fixture.h"
#include "tests/unit/memory_node/stored_rows.h"

namespace farkv {

inline std::vector<std::byte> ToBytes(const std::string& text) {
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
    DataPlane::BoundReplies(node);
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
    for (const Other& other : others_) network_.SetFrozen(other.port, false);
    for (const Other& other : others_) {
      other.transport->Shutdown(absl::ZeroDuration());
    }
    worker_->Shutdown(absl::ZeroDuration());
    node_->Shutdown(absl::ZeroDuration());
    RunAll();
    EXPECT_EQ(pool_.stats().pins, 0u);
    EXPECT_EQ(data_plane_.reply_bytes(), 0u);
  }

  static constexpr size_t kReplyBytes = 256 << 10;

  static DataPlaneOptions PlaneOptions() {
    DataPlaneOptions options;
    options.max_waiting_attends = 2;
    options.max_reply_bytes = kReplyBytes;
    options.peers.max_unproven = 2;
    return options;
  }

  void RunAll() {
    while (network_.Step() || executor_.RunAll() > 0) {
    }
  }

  // A worker beside the first one. `port` is its name for the network.
  struct Other {
    std::unique_ptr<Transport> transport;
    uint16_t port = 0;
    PeerId node;
    uint8_t session = 0;
    // Of the answers to its requests, as they came.
    std::shared_ptr<std::vector<absl::StatusCode>> codes =
        std::make_shared<std::vector<absl::StatusCode>>();
  };
  // It is connected and has said nothing yet.
  Other& AddOther(uint8_t session = 1) {
    TransportOptions options;
    options.executor = &executor_;
    options.clock = &clock_;
    Other& other = others_.emplace_back();
    other.transport = network_.CreateTransport(std::move(options));
    other.port = other.transport->Listen("worker", 0).value();
    other.node = other.transport->Connect("node", port_).value();
    other.session = session;
    RunAll();
    return other;
  }
  // It has a session and has said hello.
  Other& AddProvenOther(uint8_t session) {
    Other& other = AddOther(session);
    const std::string token = Open(session).token;
    Post(other, MessageType::kHelloRequest, ToBytes(token));
    RunAll();
    EXPECT_EQ(*other.codes, std::vector({absl::StatusCode::kOk}));
    other.codes->clear();
    return other;
  }
  // Submits and does not wait.
  void Post(const Other& other, MessageType type, std::vector<std::byte> body,
            uint32_t layer = 0) {
    ASSERT_TRUE(
        other.transport
            ->Submit(other.node,
                     MakeRequest(type, std::move(body), layer, other.session),
                     [codes = other.codes](const auto& reply) {
                       codes->push_back(reply.status().code());
                     })
            .ok());
  }

  Request MakeRequest(MessageType type, std::vector<std::byte> body,
                      uint32_t layer, uint8_t session = 1) const {
    Request request;
    request.header.type = type;
    request.header.session = TestSession(session);
    request.header.layer = layer;
    request.header.epoch = epoch_;
    request.header.step = 5;
    request.body.push_back(BufferLease::Owning(std::move(body)));
    request.timeout = absl::Seconds(1);
    return request;
  }
  absl::StatusOr<Message> Call(MessageType type, std::vector<std::byte> body,
                               uint32_t layer = kNoLayer) {
    Request request = MakeRequest(type, std::move(body), layer);
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
                ::testing::ElementsAre(absl::StatusCode::kOk));
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
  std::deque<Other> others_;
  uint16_t port_ = 0;
  PeerId peer_;
  SessionGrant grant_;
  Epoch epoch_{77};
  uint64_t next_number_ = 1;
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_MEMORY_NODE_DATA_PLANE_FIXTURE_H_

// A client and a server over a stepped loopback network, with a manual clock
// and a stepping executor: a test owns the order of every event.
#ifndef FARKV_TESTS_UNIT_TRANSPORT_STEPPED_PAIR_H_
#define FARKV_TESTS_UNIT_TRANSPORT_STEPPED_PAIR_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/transport/loopback_transport.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/stepping_executor.h"

namespace farkv {

class SteppedPair {
 public:
  using Wrap = std::function<std::unique_ptr<Transport>(
      LoopbackNetwork&, TransportOptions options)>;

  // `wrap_server` makes the server's transport.
  explicit SteppedPair(Wrap wrap_server = Plain) {
    TransportOptions options = Options();
    options.on_request = [this](Incoming incoming) {
      requests.push_back(std::move(incoming));
    };
    server = wrap_server(network, std::move(options));
    port = server->Listen("loopback", 0).value();
    client = network.CreateTransport(Options());
    peer = client->Connect("loopback", port).value();
  }
  ~SteppedPair() {
    requests.clear();
    client.reset();
    server.reset();
    executor.RunAll();
  }

  static std::unique_ptr<Transport> Plain(LoopbackNetwork& network,
                                          TransportOptions options) {
    return network.CreateTransport(std::move(options));
  }
  TransportOptions Options() {
    TransportOptions options;
    options.executor = &executor;
    options.clock = &clock;
    return options;
  }

  // Submits a request whose one piece is lent; `released` tells its return.
  OperationId Submit(absl::Duration timeout = absl::Seconds(1)) {
    Request request;
    request.header.type = MessageType::kFetchRequest;
    request.timeout = timeout;
    request.body.push_back(BufferLease(storage, [this] { ++released; }));
    return client
        ->Submit(peer, std::move(request),
                 [this](absl::StatusOr<Message> reply) {
                   codes.push_back(reply.status().code());
                 })
        .value();
  }
  void Reply(const Incoming& incoming) {
    MessageHeader header = incoming.message.header;
    header.type = MessageType::kFetchReply;
    server->Reply(incoming.peer, header, {}).IgnoreError();
  }
  // Until nothing moves any more.
  void Settle() {
    while (network.Step() || executor.RunAll() > 0) {
    }
  }

  ManualClock clock;
  SteppingExecutor executor;
  LoopbackNetwork network{LoopbackNetwork::Drive::kSteps};
  std::unique_ptr<Transport> server;
  std::unique_ptr<Transport> client;
  uint16_t port = 0;
  PeerId peer;
  std::vector<std::byte> storage = std::vector<std::byte>(100);
  int released = 0;
  std::vector<absl::StatusCode> codes;
  std::vector<Incoming> requests;
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_TRANSPORT_STEPPED_PAIR_H_

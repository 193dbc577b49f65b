#include "common/transport/faults/fault_transport.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/transport/faults/fault_core.h"

namespace farkv {
namespace {

class FaultTransportImpl final : public FaultTransport {
 public:
  FaultTransportImpl(std::shared_ptr<FaultCore> core,
                     std::unique_ptr<Transport> inner)
      : core_(std::move(core)),
        inner_(std::move(inner)),
        timer_([core_ptr = core_] { core_ptr->TimerMain(); }) {}
  ~FaultTransportImpl() override {
    Shutdown(absl::ZeroDuration());
    core_->StopHandlers(absl::InfiniteDuration());
  }

  absl::StatusOr<uint16_t> Listen(const std::string& host,
                                  uint16_t port) override {
    return inner_->Listen(host, port);
  }
  absl::StatusOr<PeerId> Connect(const std::string& host,
                                 uint16_t port) override {
    return inner_->Connect(host, port);
  }
  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    return core_->Submit(*inner_, peer, std::move(request),
                         std::move(callback));
  }
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body) override {
    return inner_->Reply(peer, header, std::move(body));
  }
  void Cancel(OperationId operation) override {
    core_->Cancel(*inner_, operation);
  }
  void ClosePeer(PeerId peer) override {
    inner_->ClosePeer(peer);
    core_->EndHeld(&peer, absl::UnavailableError("closed"));
  }
  void Shutdown(absl::Duration grace) override {
    inner_->Shutdown(grace);
    core_->Close();
    core_->EndHeld(nullptr, absl::UnavailableError("transport closed"));
    if (timer_.joinable()) timer_.join();
  }
  TransportCapabilities capabilities() const override {
    return inner_->capabilities();
  }
  TransportCounters counters() const override {
    return core_->Adjust(inner_->counters());
  }
  FaultCounters injected() const override { return core_->injected(); }

 private:
  const std::shared_ptr<FaultCore> core_;
  const std::unique_ptr<Transport> inner_;
  std::thread timer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FaultTransport>> CreateFaultTransport(
    const FaultSpec& spec, TransportOptions options,
    const TransportFactory& factory) {
  auto core = std::make_shared<FaultCore>(spec, std::move(options));
  FARKV_ASSIGN_OR_RETURN(auto inner, factory(core->InnerOptions()));
  return std::make_unique<FaultTransportImpl>(std::move(core),
                                              std::move(inner));
}

}  // namespace farkv

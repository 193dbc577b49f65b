#include <memory>
#include <utility>

#include "common/transport/loopback_transport.h"
#include "tests/conformance/transport_conformance.h"

namespace farkv {
namespace {

class LoopbackBackend {
 public:
  std::unique_ptr<Transport> Create(TransportOptions options) {
    return network_->CreateTransport(std::move(options));
  }

 private:
  std::unique_ptr<LoopbackNetwork> network_ =
      std::make_unique<LoopbackNetwork>(LoopbackNetwork::Drive::kThread);
};

INSTANTIATE_TYPED_TEST_SUITE_P(Loopback, TransportConformanceTest,
                               LoopbackBackend);

}  // namespace
}  // namespace farkv

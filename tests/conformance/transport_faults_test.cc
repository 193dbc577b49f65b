// The fault decorator with nothing to inject keeps every promise of the
// transport inside.
#include <memory>
#include <utility>

#include "common/transport/faults/fault_transport.h"
#include "common/transport/loopback_transport.h"
#include "common/transport/ucx/ucx_transport.h"
#include "tests/conformance/transport_conformance.h"

namespace farkv {
namespace {

class FaultlessLoopbackBackend {
 public:
  std::unique_ptr<Transport> Create(TransportOptions options) {
    return CreateFaultTransport(
               FaultSpec(), std::move(options),
               [this](TransportOptions inner) {
                 return network_->CreateTransport(std::move(inner));
               })
        .value();
  }

 private:
  std::unique_ptr<LoopbackNetwork> network_ =
      std::make_unique<LoopbackNetwork>(LoopbackNetwork::Drive::kThread);
};

class FaultlessUcxBackend {
 public:
  std::unique_ptr<Transport> Create(TransportOptions options) {
    return CreateFaultTransport(FaultSpec(), std::move(options),
                                [](TransportOptions inner) {
                                  return CreateUcxTransport(std::move(inner),
                                                            UcxOptions());
                                })
        .value();
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(FaultlessLoopback, TransportConformanceTest,
                               FaultlessLoopbackBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(FaultlessUcx, TransportConformanceTest,
                               FaultlessUcxBackend);

}  // namespace
}  // namespace farkv

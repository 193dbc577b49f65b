#include <memory>
#include <utility>

#include "common/transport/ucx/ucx_transport.h"
#include "tests/conformance/transport_conformance.h"

namespace farkv {
namespace {

class UcxTcpBackend {
 public:
  std::unique_ptr<Transport> Create(TransportOptions options) {
    return CreateUcxTransport(std::move(options), UcxOptions()).value();
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(UcxTcp, TransportConformanceTest, UcxTcpBackend);

}  // namespace
}  // namespace farkv

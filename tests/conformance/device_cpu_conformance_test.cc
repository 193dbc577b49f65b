#include "tests/conformance/device_conformance.h"

namespace farkv {
namespace {

struct CpuTraits {
  static absl::StatusOr<std::unique_ptr<Device>> Open(ThreadPool& pool) {
    return OpenDevice("cpu", pool);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, DeviceConformanceTest, CpuTraits);

TEST(CpuStreamTest, AnOperationHasRunWhenEnqueueReturns) {
  ThreadPool pool(1);
  auto device = OpenDevice("cpu", pool).value();
  auto stream = device->NewStream();
  bool ran = false;

  stream->Enqueue([&ran](ThreadPool&) { ran = true; });

  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace farkv

// Stands in for the fake device in programs that are not for fault tests.
#include "kernels/device_kinds.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<Device>> OpenFakeDevice(ThreadPool&) {
  return absl::UnimplementedError(
      "device \"fake\" exists only in the -faults programs; use --device=cpu");
}

}  // namespace farkv

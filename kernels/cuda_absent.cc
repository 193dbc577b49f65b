// Stands in for the CUDA device when no CUDA toolkit was found.
#include "kernels/device_kinds.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(ThreadPool&) {
  return absl::UnimplementedError(
      "device \"cuda\" is not in this program: it was built without a CUDA "
      "toolkit; use --device=cpu");
}

}  // namespace farkv

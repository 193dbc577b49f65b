// How OpenDevice reaches each kind of device. Not for use outside kernels/.
//
// A program without a kind links a file that returns UNIMPLEMENTED instead:
// cuda_absent.cc without a CUDA toolkit, device_fake_absent.cc everywhere but
// in the -faults programs and tests.
#ifndef FARKV_KERNELS_DEVICE_KINDS_H_
#define FARKV_KERNELS_DEVICE_KINDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/stream.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<Device>> OpenCpuDevice(ThreadPool& pool);
absl::StatusOr<std::unique_ptr<Device>> OpenFakeDevice(ThreadPool& pool);
absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(ThreadPool& pool);

}  // namespace farkv

#endif  // FARKV_KERNELS_DEVICE_KINDS_H_

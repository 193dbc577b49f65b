#include "absl/strings/str_cat.h"
#include "kernels/device_kinds.h"

namespace farkv {

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this == &other) return *this;
  if (release_) release_();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  release_ = std::exchange(other.release_, nullptr);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (release_) release_();
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name,
                                                   ThreadPool& pool) {
  if (name == "cpu") return OpenCpuDevice(pool);
  if (name == "fake") return OpenFakeDevice(pool);
  if (name == "cuda") return OpenCudaDevice(pool);
  return absl::InvalidArgumentError(absl::StrCat(
      "device is \"", name, "\", must be \"cpu\", \"fake\" or \"cuda\""));
}

}  // namespace farkv

// Read-only view of a .safetensors file, mapped, not copied. Format:
// 8 bytes little-endian header length, a JSON object of
// name -> {dtype, shape, data_offsets}, then the data, which the tensors fill
// without holes (github.com/huggingface/safetensors).
//
// Thread-safe after Open. The views borrow from the file object.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_H_
#define FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/mapped_file.h"
#include "gpu_worker/checkpoint/tensor_source.h"

namespace farkv {

class SafetensorsFile : public TensorSource {
 public:
  // NOT_FOUND when the file is missing; INVALID_ARGUMENT naming the tensor and
  // the numbers compared when it is truncated or inconsistent (overlaps,
  // surplus bytes, offsets outside the file, size not that of the shape,
  // unknown dtype, a name given twice).
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);
  // The same for bytes that outlive the object; `path` is for messages.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Parse(
      std::span<const std::byte> bytes, const std::string& path);

  absl::StatusOr<TensorView> Find(
      const std::string& name,
      const std::vector<int64_t>& shape) const override;
  std::optional<std::string> FindUnused(
      const std::set<std::string>& used) const override;
  bool Contains(const std::string& name) const;
  const std::string& path() const override { return path_; }
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  SafetensorsFile() = default;
  absl::Status Read(std::span<const std::byte> bytes);
  absl::Status CheckThatTensorsFill(std::span<const std::byte> data) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_H_

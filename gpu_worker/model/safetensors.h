// Read-only view of a .safetensors file, mapped, not copied. Format:
// 8 bytes little-endian header length, a JSON object of
// name -> {dtype, shape, data_offsets}, then the data
// (github.com/huggingface/safetensors).
//
// Thread-safe after Open. The views borrow from the file object.
#ifndef FARKV_GPU_WORKER_MODEL_SAFETENSORS_H_
#define FARKV_GPU_WORKER_MODEL_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace farkv {

enum class TensorType { kF32, kF16, kBf16 };

const char* TensorTypeName(TensorType type);

struct TensorView {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, dense

  int64_t NumElements() const;
};

class SafetensorsFile {
 public:
  // NOT_FOUND when the file is missing; INVALID_ARGUMENT naming the tensor and
  // the numbers compared when it is truncated or inconsistent (overlaps,
  // offsets outside the file, size not that of the shape, unknown dtype).
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // NOT_FOUND naming the tensor; INVALID_ARGUMENT naming both shapes.
  absl::StatusOr<TensorView> Find(const std::string& name,
                                  const std::vector<int64_t>& shape) const;
  bool Contains(const std::string& name) const;
  const std::string& path() const { return path_; }

 private:
  SafetensorsFile() = default;
  absl::Status ReadHeader();

  std::string path_;
  std::span<const std::byte> file_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_SAFETENSORS_H_

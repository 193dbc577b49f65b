// Read-only view of a GGUF file, versions 2 and 3, little endian, mapped. The
// format: magic, version, counts, metadata (key, type, value), tensor infos
// (name, extents with the fastest first, type, offset), padding to
// general.alignment, then the tensors' data, each aligned
// (github.com/ggml-org/ggml, docs/gguf.md).
//
// Goals: every length and count is checked against the bytes that are left
// before anything is allocated for it. Non-goals: split files; arrays of
// arrays, which the format allows and nobody writes.
//
// Thread-safe after Open. What getters and tensors return as views borrows
// from the file object.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_GGUF_FILE_H_
#define FARKV_GPU_WORKER_CHECKPOINT_GGUF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/gguf_types.h"
#include "gpu_worker/checkpoint/mapped_file.h"

namespace farkv {

struct GgufTensor {
  uint32_t type = 0;           // as stored; GgufTypeName tells it
  std::vector<int64_t> shape;  // row-major: the file's extents reversed
  // Empty when `type` is none of TensorType: its size is not known here.
  std::span<const std::byte> bytes;
};

class GgufFile {
 public:
  // NOT_FOUND when the file is missing; INVALID_ARGUMENT naming the key or
  // tensor and the numbers compared when it is no GGUF, truncated or
  // inconsistent; UNIMPLEMENTED for other versions and big endian files.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(
      const std::string& path);
  // The same for bytes that outlive the object; `path` is for messages.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(
      std::span<const std::byte> bytes, const std::string& path);

  // Getters: NOT_FOUND naming the key; INVALID_ARGUMENT naming the key and
  // the stored type. Integers of any width serve as int64_t when they fit,
  // floats of either width as double; nothing else is converted.
  bool Has(const std::string& key) const { return values_.contains(key); }
  absl::StatusOr<std::string_view> String(const std::string& key) const;
  absl::StatusOr<int64_t> Integer(const std::string& key) const;
  absl::StatusOr<double> Real(const std::string& key) const;
  absl::StatusOr<bool> Bool(const std::string& key) const;
  absl::StatusOr<std::vector<std::string_view>> Strings(
      const std::string& key) const;
  absl::StatusOr<std::vector<int64_t>> Integers(const std::string& key) const;
  absl::StatusOr<std::vector<double>> Reals(const std::string& key) const;
  absl::StatusOr<std::vector<bool>> Bools(const std::string& key) const;

  const std::map<std::string, GgufTensor, std::less<>>& tensors() const {
    return tensors_;
  }
  const std::string& path() const { return path_; }

 private:
  friend class GgufParser;
  GgufFile() = default;
  absl::StatusOr<const GgufValue*> Scalar(const std::string& key) const;
  absl::StatusOr<const GgufValue*> Array(const std::string& key) const;
  absl::Status WrongType(const std::string& key, const GgufValue& value,
                         const char* wanted) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_GGUF_FILE_H_

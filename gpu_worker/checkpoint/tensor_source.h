// Named tensors of a checkpoint, whatever the files are: one .safetensors, a
// sharded set of them with its index, or a GGUF file. Names are those of
// Hugging Face ("model.layers.3.self_attn.q_proj.weight") and rows are in its
// order; a GGUF source translates both.
//
// Goals: nothing is copied that the file can be mapped for; a malformed file
// is an error, never a crash, and what it makes us allocate is bounded by its
// own size. Non-goals: converting values; files that change while mapped.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_TENSOR_SOURCE_H_
#define FARKV_GPU_WORKER_CHECKPOINT_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace farkv {

// Quantised types are those of ggml, bit by bit; their groups run along a row.
enum class TensorType { kF32, kF16, kBf16, kQ8_0, kQ4_0, kQ4_1, kQ4_K, kQ6_K };

const char* TensorTypeName(TensorType type);  // "F32", "Q4_K"
// A group is the smallest unit of a row that can be read; 1 for plain types.
int64_t GroupElements(TensorType type);
int64_t GroupBytes(TensorType type);

// "[2, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);
// Bytes of a dense tensor; nothing when an extent is negative, the count
// overflows or the last extent is no whole number of groups.
std::optional<uint64_t> TensorBytes(TensorType type,
                                    const std::vector<int64_t>& shape);

struct TensorView {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;        // row-major, last varies fastest
  std::span<const std::byte> bytes;  // dense, of any alignment
  // Owns `bytes` where they are not the file's own; else they live as long as
  // the source.
  std::shared_ptr<const std::vector<std::byte>> owner;

  int64_t NumElements() const;
};

// OK, or INVALID_ARGUMENT naming file, tensor and both shapes.
absl::Status CheckShape(const std::string& path, const std::string& name,
                        const std::vector<int64_t>& stored,
                        const std::vector<int64_t>& wanted);

// Virtual because the format is known only once the file is seen; nothing of
// it is called after loading. Thread-safe.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // NOT_FOUND naming the tensor; INVALID_ARGUMENT naming both shapes;
  // UNIMPLEMENTED naming a stored type that TensorType lacks.
  virtual absl::StatusOr<TensorView> Find(
      const std::string& name, const std::vector<int64_t>& shape) const = 0;
  // The name, as stored, of a tensor that `used` does not have; nothing when
  // it has all of them.
  virtual std::optional<std::string> FindUnused(
      const std::set<std::string>& used) const = 0;
  virtual const std::string& path() const = 0;  // the file that messages name
};

enum class CheckpointFormat { kSafetensors, kSafetensorsIndex, kGguf };
struct CheckpointFile {
  CheckpointFormat format = CheckpointFormat::kSafetensors;
  std::string path;
};

// `model_path` is a .gguf file, or a directory with model.safetensors, or else
// model.safetensors.index.json, or else exactly one .gguf. NOT_FOUND naming
// what was looked for, INVALID_ARGUMENT naming two .gguf files to choose from.
absl::StatusOr<CheckpointFile> LocateCheckpoint(const std::string& model_path);

// Opens what LocateCheckpoint finds.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensors(
    const std::string& model_path);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_TENSOR_SOURCE_H_

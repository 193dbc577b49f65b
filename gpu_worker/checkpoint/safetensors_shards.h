// Several .safetensors files behind one index, model.safetensors.index.json:
// {"weight_map": {tensor name: file name}}. Thread-safe after Open.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_SHARDS_H_
#define FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_SHARDS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/safetensors.h"
#include "gpu_worker/checkpoint/tensor_source.h"

namespace farkv {

// Tensor name -> name of its file in the index's own folder. INVALID_ARGUMENT
// when `text` is no index, a tensor is named twice or a file name is not a
// plain one that ends with .safetensors.
absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(
    std::span<const std::byte> text);

class SafetensorsShards : public TensorSource {
 public:
  // Opens every file that the index names. NOT_FOUND naming a missing one;
  // INVALID_ARGUMENT when index and files disagree on where a tensor is, and
  // for what SafetensorsFile::Open refuses.
  static absl::StatusOr<std::unique_ptr<SafetensorsShards>> Open(
      const std::string& index_path);

  absl::StatusOr<TensorView> Find(
      const std::string& name,
      const std::vector<int64_t>& shape) const override;
  std::optional<std::string> FindUnused(
      const std::set<std::string>& used) const override;
  const std::string& path() const override { return path_; }

 private:
  SafetensorsShards() = default;
  absl::Status CheckAgreement() const;

  std::string path_;
  std::map<std::string, std::string> weight_map_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> shards_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_SAFETENSORS_SHARDS_H_

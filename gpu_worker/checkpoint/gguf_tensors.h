// The tensors of a GGUF file under Hugging Face's names and in its row order.
//
// llama.cpp rotates neighbouring pairs (2i, 2i + 1) of a head for the
// architecture "llama", so its converter has moved the rows of Q and K there;
// others keep the order of Hugging Face, which pairs i with i + d / 2. Rows
// are moved back into memory of the view's own; groups of quantised types run
// along a row, so every type can be moved. All else is the mapped file.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_GGUF_TENSORS_H_
#define FARKV_GPU_WORKER_CHECKPOINT_GGUF_TENSORS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/gguf_file.h"
#include "gpu_worker/checkpoint/tensor_source.h"

namespace farkv {

// "blk.3.attn_q.weight" for "model.layers.3.self_attn.q_proj.weight"; nothing
// for a name that GGUF has no place for. GGUF's "rope_freqs.weight" (divisors
// of the RoPE frequencies) has no name elsewhere and stands for itself.
std::optional<std::string> GgufTensorName(const std::string& name);

class GgufTensors : public TensorSource {
 public:
  // INVALID_ARGUMENT or NOT_FOUND when the metadata does not tell architecture
  // and heads; UNIMPLEMENTED for one of several files of a split model.
  static absl::StatusOr<std::unique_ptr<GgufTensors>> Create(
      std::shared_ptr<const GgufFile> file);

  absl::StatusOr<TensorView> Find(
      const std::string& name,
      const std::vector<int64_t>& shape) const override;
  std::optional<std::string> FindUnused(
      const std::set<std::string>& used) const override;
  const std::string& path() const override { return file_->path(); }

 private:
  explicit GgufTensors(std::shared_ptr<const GgufFile> file)
      : file_(std::move(file)) {}
  absl::Status ReadHeads(const std::string& architecture);
  // Heads whose rows were moved in the tensor called `name`; 0 for none.
  int64_t MovedHeads(const std::string& name) const;

  std::shared_ptr<const GgufFile> file_;
  int64_t query_heads_ = 0;  // both 0 when no rows were moved
  int64_t kv_heads_ = 0;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_GGUF_TENSORS_H_

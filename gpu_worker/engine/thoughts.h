// The tokens of a model's thoughts: those between "<think>" and "</think>"
// (DeepSeek-R1, Qwen3), where its tokenizer has a token for each mark. Marks
// that are written with several tokens are text like any other.
// Thread-compatible.
#ifndef FARKV_GPU_WORKER_ENGINE_THOUGHTS_H_
#define FARKV_GPU_WORKER_ENGINE_THOUGHTS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

struct ThoughtMarks {
  int32_t start = 0, end = 0;  // token ids
};

std::optional<ThoughtMarks> FindThoughtMarks(const Tokenizer& tokenizer);

// Counts the tokens of an output that are between the marks, the marks left
// out. A prompt may end within a thought, as R1's template makes it.
class ThoughtCounter {
 public:
  ThoughtCounter(std::optional<ThoughtMarks> marks,
                 std::span<const int32_t> prompt);
  void AddOutput(int32_t token);
  int64_t count() const { return count_; }

 private:
  bool IsMark(int32_t token);

  std::optional<ThoughtMarks> marks_;
  bool inside_ = false;
  int64_t count_ = 0;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_THOUGHTS_H_

// Cuts a text into the parts that no token crosses. Immutable, thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_PRE_TOKENIZER_H_
#define FARKV_GPU_WORKER_TOKENIZER_PRE_TOKENIZER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/tokenizer/regex.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

// A text and its parts, in order; what no part covers is dropped.
struct CutText {
  std::string text;
  std::vector<TextSpan> parts;
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  // INVALID_ARGUMENT naming the step that cannot be; UNIMPLEMENTED when
  // kByteLevel is not the last one.
  static absl::StatusOr<PreTokenizer> Create(
      const std::vector<PreTokenizerStep>& steps);

  // `text` is valid UTF-8; `at_front`: nothing of the prompt is before it.
  // Parts stay plain bytes also with kByteLevel (see byte_level()).
  absl::StatusOr<CutText> Cut(std::string text, bool at_front) const;

  // The pieces are spelled in GPT-2's alphabet of bytes.
  bool byte_level() const { return byte_level_; }

 private:
  struct Step {
    PreTokenizerStep settings;
    std::optional<Regex> regex;
  };

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_PRE_TOKENIZER_H_

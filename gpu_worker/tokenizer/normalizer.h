// Rewrites a text as the tokenizer's model wants it. Immutable, thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_NORMALIZER_H_
#define FARKV_GPU_WORKER_TOKENIZER_NORMALIZER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gpu_worker/tokenizer/regex.h"
#include "gpu_worker/tokenizer/tokenizer_spec.h"

namespace farkv {

class Normalizer {
 public:
  Normalizer() = default;
  // INVALID_ARGUMENT naming the step that cannot be.
  static absl::StatusOr<Normalizer> Create(std::vector<NormalizerStep> steps);

  // `text` must be valid UTF-8. The steps are applied in order; an empty text
  // stays empty.
  absl::StatusOr<std::string> Apply(absl::string_view text) const;
  // `spans` of the text, in order, become those of the rewritten one. What a
  // step makes of a span and its neighbours together belongs to the span; two
  // spans may then share it.
  absl::StatusOr<std::string> Apply(absl::string_view text,
                                    std::vector<TextSpan>& spans) const;
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_NORMALIZER_H_

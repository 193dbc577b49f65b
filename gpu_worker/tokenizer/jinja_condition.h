// Whether a condition of a Jinja chat template is about tools, judged by the
// words in it. Pure.
#ifndef FARKV_GPU_WORKER_TOKENIZER_JINJA_CONDITION_H_
#define FARKV_GPU_WORKER_TOKENIZER_JINJA_CONDITION_H_

#include "absl/strings/string_view.h"

namespace farkv {

enum class Tools {
  kNotNamed,
  kNeeded,      // a part of it is true with tools only: "tools is not none"
  kAbsent,      // parts of it are true without tools
  kOnlyAbsent,  // and nothing else is in it: "not tools"
};

Tools ToolsIn(absl::string_view condition);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_JINJA_CONDITION_H_

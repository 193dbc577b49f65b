// What a Jinja chat template may write, found without running it: its string
// literals and the text between its tags. Pure.
//
// Left out are branches that are taken with tools only, and literals that are
// not written: keys, arguments of calls and filters, and what is compared.
// Conditions are looked at for tools alone, so all other branches count.
#ifndef FARKV_GPU_WORKER_TOKENIZER_JINJA_TEXT_H_
#define FARKV_GPU_WORKER_TOKENIZER_JINJA_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

struct JinjaText {
  // In the file's order, unescaped, none empty. What directly follows each
  // other is one. White space between tags is cut as Hugging Face sets up Jinja
  // (trim_blocks, lstrip_blocks).
  std::vector<std::string> literals;
  bool bos = false;  // whether bos_token is written
  bool eos = false;
};

// UNIMPLEMENTED naming the place when a tag or a literal does not end.
absl::StatusOr<JinjaText> ReadJinjaText(absl::string_view jinja);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_JINJA_TEXT_H_

// What Unicode has assigned since the tables of Debian's PCRE2 were made.
#ifndef FARKV_GPU_WORKER_TOKENIZER_NEWER_CHARACTERS_H_
#define FARKV_GPU_WORKER_TOKENIZER_NEWER_CHARACTERS_H_

#include "absl/strings/string_view.h"

namespace farkv {

// The characters of a general category (L, M, N, P or S) that are in Unicode 16
// and not in 14, as the inside of a character class; empty for another letter.
absl::string_view NewerCharacters(char category);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_NEWER_CHARACTERS_H_

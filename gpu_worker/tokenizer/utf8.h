// UTF-8, looked at byte by byte. Pure.
#ifndef FARKV_GPU_WORKER_TOKENIZER_UTF8_H_
#define FARKV_GPU_WORKER_TOKENIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace farkv {

// What the bytes at the front of a text are.
struct Utf8Prefix {
  enum class Kind {
    kCharacter,   // one whole character
    kIncomplete,  // the text ends within a character
    kInvalid,     // bytes that no character starts with
  };
  Kind kind = Kind::kInvalid;
  size_t bytes = 0;         // 1 to 4: of the character or of what to skip
  uint32_t code_point = 0;  // kCharacter
};

// `text` must not be empty. Surrogates, overlong forms and values above
// U+10FFFF are invalid; an invalid or incomplete prefix is as long as it could
// still have become a character (Unicode 3.9, maximal subparts).
Utf8Prefix ReadUtf8(absl::string_view text);

void AppendUtf8(uint32_t code_point, std::string& text);

// U+FFFD, which stands for bytes that are no character.
inline constexpr char kReplacementCharacter[] = "\xef\xbf\xbd";

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_UTF8_H_

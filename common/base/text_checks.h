// Texts from outside, before they are sent, logged or shown: protobuf carries
// UTF-8 only, and a control character can forge a line of a log or drive a
// terminal. Pure.
#ifndef FARKV_COMMON_BASE_TEXT_CHECKS_H_
#define FARKV_COMMON_BASE_TEXT_CHECKS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace farkv {

// The byte at which `text` stops being UTF-8 (RFC 3629); npos when it is all.
size_t FindInvalidUtf8(const std::string& text);
// Each byte that is no part of a character becomes U+FFFD.
std::string ReplaceInvalidUtf8(const std::string& text);

// INVALID_ARGUMENT "'TEXT' has ..." for control characters and what is not
// UTF-8.
absl::Status CheckPrintable(const std::string& text);
// `text` in quotes for a message: the beginning of a long one, escaped where
// it cannot be shown.
std::string ShownText(const std::string& text);

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_TEXT_CHECKS_H_

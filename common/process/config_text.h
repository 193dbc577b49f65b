// The text of a configuration file: lines `key = value` of TOML, comments and
// empty lines, nothing else. CLI11 skips what it cannot use, takes a bare word
// for `word = true` and the last of two equal keys; here each of them is an
// error. Pure; thread-safe.
#ifndef FARKV_COMMON_PROCESS_CONFIG_TEXT_H_
#define FARKV_COMMON_PROCESS_CONFIG_TEXT_H_

#include <string>

#include "absl/status/status.h"

namespace farkv {

// INVALID_ARGUMENT naming the line, and the word or the key.
absl::Status CheckConfigText(const std::string& text);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_CONFIG_TEXT_H_

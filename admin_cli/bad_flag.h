// What is wrong with a flag's value, after the flag's name. Pure.
#ifndef FARKV_ADMIN_CLI_BAD_FLAG_H_
#define FARKV_ADMIN_CLI_BAD_FLAG_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace farkv {

inline absl::Status BadFlag(const char* flag, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", why));
}

// OK stays OK, and a code says what it said.
inline absl::Status BadFlag(const char* flag, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(flag, ": ", status.message()));
}

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_BAD_FLAG_H_

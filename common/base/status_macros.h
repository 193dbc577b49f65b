// The two error-propagation macros of the project. There are no others.
#ifndef FARKV_COMMON_BASE_STATUS_MACROS_H_
#define FARKV_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FARKV_RETURN_IF_ERROR(expr)                               \
  do {                                                            \
    if (absl::Status farkv_status = (expr); !farkv_status.ok()) { \
      return farkv_status;                                        \
    }                                                             \
  } while (false)

#define FARKV_CONCAT_INNER(a, b) a##b
#define FARKV_CONCAT(a, b) FARKV_CONCAT_INNER(a, b)

#define FARKV_ASSIGN_OR_RETURN(lhs, expr) \
  FARKV_ASSIGN_OR_RETURN_IMPL(FARKV_CONCAT(farkv_or_, __LINE__), lhs, expr)
#define FARKV_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return std::move(tmp).status();    \
  lhs = std::move(tmp).value()

#endif  // FARKV_COMMON_BASE_STATUS_MACROS_H_

// What is shown of a session id. The id itself lets its bearer act on the
// session (docs/DECISIONS.md), so logs, errors, metrics and the admin API carry
// only a handle: the first four bytes, in text 8 hex digits. 96 bits stay
// secret. A handle names a session to operators; with very little luck it names
// two. Pure.
#ifndef FARKV_COMMON_BASE_SESSION_HANDLE_H_
#define FARKV_COMMON_BASE_SESSION_HANDLE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace farkv {

inline constexpr size_t kSessionHandleBytes = 4;

// 8 lower-case hex digits.
std::string SessionHandle(const SessionId& session);
// The same as bytes, for `bytes session_id` of the admin protos.
std::string SessionHandleBytes(const SessionId& session);

// What an operator typed or an admin call carries: a handle, or a whole id.
class SessionPattern {
 public:
  // 8 or 32 lower-case hex digits. The error does not repeat a whole id.
  static absl::StatusOr<SessionPattern> FromHex(absl::string_view hex);
  // 4 or 16 bytes.
  static absl::StatusOr<SessionPattern> FromBytes(absl::string_view bytes);

  bool Matches(const SessionId& session) const;
  // The smallest and the largest id that can match.
  SessionId First() const;
  SessionId Last() const;

 private:
  std::string bytes_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_SESSION_HANDLE_H_

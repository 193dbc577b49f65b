#include "common/base/session_handle.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

constexpr size_t kIdBytes = sizeof(SessionId::bytes);

SessionId Padded(const std::string& start, uint8_t rest) {
  SessionId id;
  id.bytes.fill(rest);
  std::copy(start.begin(), start.end(), id.bytes.begin());
  return id;
}

}  // namespace

std::string SessionHandleBytes(const SessionId& session) {
  return session.ToBytes().substr(0, kSessionHandleBytes);
}

std::string SessionHandle(const SessionId& session) {
  return absl::BytesToHexString(SessionHandleBytes(session));
}

absl::StatusOr<SessionPattern> SessionPattern::FromHex(absl::string_view hex) {
  const bool digits =
      hex.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
  if (!digits ||
      (hex.size() != 2 * kSessionHandleBytes && hex.size() != 2 * kIdBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a session is named by the 8 lower-case hex digits that are shown of "
        "its id, or by all 32; got ",
        hex.size(), " characters starting \"",
        absl::CHexEscape(hex.substr(0, 8)), "\""));
  }
  return FromBytes(absl::HexStringToBytes(hex));
}

absl::StatusOr<SessionPattern> SessionPattern::FromBytes(
    absl::string_view bytes) {
  if (bytes.size() != kSessionHandleBytes && bytes.size() != kIdBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "session id has ", bytes.size(), " bytes, must have ", kIdBytes,
        ", or the first ", kSessionHandleBytes, " that are shown of it"));
  }
  SessionPattern pattern;
  pattern.bytes_ = std::string(bytes);
  return pattern;
}

bool SessionPattern::Matches(const SessionId& session) const {
  return std::equal(
      bytes_.begin(), bytes_.end(), session.bytes.begin(),
      [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

SessionId SessionPattern::First() const { return Padded(bytes_, 0x00); }
SessionId SessionPattern::Last() const { return Padded(bytes_, 0xff); }

}  // namespace farkv

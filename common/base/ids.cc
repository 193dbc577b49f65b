#include "common/base/ids.h"

#include <cstring>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace farkv {

SessionId SessionId::Random() {
  // Making one asks the processor what it can do, which costs tens of
  // microseconds on a virtual machine.
  thread_local std::random_device device;
  SessionId id;
  for (size_t i = 0; i < id.bytes.size(); i += 4) {
    const uint32_t word = device();
    std::memcpy(&id.bytes[i], &word, 4);
  }
  return id;
}

absl::StatusOr<SessionId> SessionId::FromHex(absl::string_view hex) {
  const bool digits =
      hex.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
  if (hex.size() != 32 || !digits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "session id must be 32 lower-case hex digits, got \"", hex, "\""));
  }
  return FromBytes(absl::HexStringToBytes(hex));
}

absl::StatusOr<SessionId> SessionId::FromBytes(absl::string_view raw) {
  SessionId id;
  if (raw.size() != id.bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("session id must have 16 bytes, got ", raw.size()));
  }
  std::memcpy(id.bytes.data(), raw.data(), raw.size());
  return id;
}

std::string SessionId::ToHex() const {
  return absl::BytesToHexString(ToBytes());
}

std::string SessionId::ToBytes() const {
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace farkv

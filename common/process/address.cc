#include "common/process/address.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

absl::Status Malformed(const std::string& text, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::Utf8SafeCHexEscape(text), "' is not host:port: ", why));
}

bool IsHostCharacter(char c) {
  // '%' precedes the zone of an IPv6 address; "*" is every address.
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
         c == '-' || c == '_' || c == ':' || c == '%' || c == '*';
}

bool ParsePort(const std::string& text, uint16_t* port) {
  uint32_t number = 0;
  if (text.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(text, &number) || number > 65535) {
    return false;
  }
  *port = static_cast<uint16_t>(number);
  return true;
}

}  // namespace

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  if (text.find("://") != std::string::npos) {
    return Malformed(text, "leave out the part with ://");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Malformed(text, "no port");
  Address address;
  address.host = text.substr(0, colon);
  if (address.host.size() >= 2 && address.host.front() == '[' &&
      address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return Malformed(text, "an IPv6 host needs brackets");
  }
  if (address.host.empty()) return Malformed(text, "no host");
  for (char c : address.host) {
    if (!IsHostCharacter(c)) {
      return Malformed(text, "the host has a character that no host has");
    }
  }
  if (!ParsePort(text.substr(colon + 1), &address.port)) {
    return Malformed(text, "the port must be a number from 0 to 65535");
  }
  return address;
}

absl::StatusOr<Address> ParsePeerAddress(const std::string& text) {
  FARKV_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  if (address.port != 0) return address;
  return Malformed(text, "nothing listens on port 0");
}

std::string FormatAddress(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return absl::StrCat(brackets ? "[" : "", address.host, brackets ? "]" : "",
                      ":", address.port);
}

}  // namespace farkv

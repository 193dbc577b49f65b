#include "common/process/address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

absl::Status Malformed(const std::string& text, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not host:port: ", why));
}

}  // namespace

absl::StatusOr<Address> ParseAddress(const std::string& text) {
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
  uint32_t port = 0;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return Malformed(text, "the port must be a number from 0 to 65535");
  }
  address.port = static_cast<uint16_t>(port);
  return address;
}

std::string FormatAddress(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return absl::StrCat(brackets ? "[" : "", address.host, brackets ? "]" : "",
                      ":", address.port);
}

}  // namespace farkv

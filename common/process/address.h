// "host:port" as flags and protos carry it. Pure.
#ifndef FARKV_COMMON_PROCESS_ADDRESS_H_
#define FARKV_COMMON_PROCESS_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace farkv {

struct Address {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// "127.0.0.1:7401", "node-0.nodes:7401", "[::1]:0". INVALID_ARGUMENT quoting
// the text when host or port is missing or the port is not in 0..65535.
absl::StatusOr<Address> ParseAddress(const std::string& text);

// An address to connect to: the same, and port 0 is refused too.
absl::StatusOr<Address> ParsePeerAddress(const std::string& text);

// With brackets where the host contains a colon.
std::string FormatAddress(const Address& address);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_ADDRESS_H_

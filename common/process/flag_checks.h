// What texts from outside must look like, one wording for flags and fields.
// Each is INVALID_ARGUMENT repeating the value, with what cannot be shown
// escaped, and saying what is wrong with it. Pure.
#ifndef FARKV_COMMON_PROCESS_FLAG_CHECKS_H_
#define FARKV_COMMON_PROCESS_FLAG_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace farkv {

inline constexpr size_t kMaxNameBytes = 100;

// What names a process, a tenant or a file: 1 to kMaxNameBytes letters,
// digits, '.', '_' and '-', the first a letter or digit.
absl::Status CheckName(const std::string& text);
// A host name or an address, no port.
absl::Status CheckHost(const std::string& text);
// Names of network interfaces of this machine ("eth0"), RDMA devices
// ("mlx5_0:1") or "all", comma-separated.
absl::Status CheckInterfaces(const std::string& text);

// The elements of "a, b"; none for an empty text, an error for an empty element
// or one that comes twice.
absl::StatusOr<std::vector<std::string>> ParseList(const std::string& text);
// A list of addresses to connect to: "host:port", not port 0.
absl::StatusOr<std::vector<std::string>> ParsePeers(const std::string& text);

// "9000-9100".
struct PortRange {
  uint16_t first = 0, last = 0;
};
absl::StatusOr<PortRange> ParsePortRange(const std::string& text);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_FLAG_CHECKS_H_

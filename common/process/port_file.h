// The file in which a program says, once it is ready, where it listens: a JSON
// object, written beside the path and renamed over it, so a reader sees all of
// it or nothing. With port 0 this is how others learn the ports.
#ifndef FARKV_COMMON_PROCESS_PORT_FILE_H_
#define FARKV_COMMON_PROCESS_PORT_FILE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace farkv {

struct PortFile {
  std::map<std::string, uint64_t> numbers;   // ports, epoch
  std::map<std::string, std::string> texts;  // ids
};

// Adds "pid". An empty path writes nothing. UNAVAILABLE naming the path and
// the cause when it cannot be written.
absl::Status WritePortFile(const std::string& path, const PortFile& contents);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_PORT_FILE_H_

// The file in which a program says, once it is ready, where it listens: a JSON
// object, written beside the path and renamed over it, so a reader sees all of
// it or nothing. With port 0 this is how others learn the ports. It is there
// as long as what it says is true: gone after a clean exit, and a file left by
// an earlier life is gone as soon as the program starts.
#ifndef FARKV_COMMON_PROCESS_PORT_FILE_H_
#define FARKV_COMMON_PROCESS_PORT_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace farkv {

struct PortFile {
  std::map<std::string, uint64_t> numbers;   // ports, epoch
  std::map<std::string, std::string> texts;  // ids
};

// Move-only; thread-compatible.
class PortFileWriter {
 public:
  // Before anything is served. An empty path: no file. UNAVAILABLE naming the
  // path and the cause when it cannot be written.
  static absl::StatusOr<PortFileWriter> Open(const std::string& path);
  PortFileWriter(PortFileWriter&& other) noexcept { *this = std::move(other); }
  PortFileWriter& operator=(PortFileWriter&& other) noexcept;
  // Removes the file, unless another program has put its own there.
  ~PortFileWriter();

  // Adds "pid". Call it once; same errors.
  absl::Status Publish(const PortFile& contents);

 private:
  PortFileWriter() = default;

  std::string path_, temporary_;  // empty: nothing to remove
  int published_ = -1;            // a descriptor of the file; -1: not yet
};

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_PORT_FILE_H_

// A program started as a child, for benches and tests: never a zombie, never
// left behind by a normal end of its owner. Move-only; thread-compatible.
#ifndef FARKV_COMMON_PROCESS_CHILD_PROCESS_H_
#define FARKV_COMMON_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace farkv {

class ChildProcess {
 public:
  // Runs `arguments` (the first is the program's path) with stdout and stderr
  // appended to `log_file`. UNAVAILABLE naming the program and the cause.
  static absl::StatusOr<ChildProcess> Start(
      const std::vector<std::string>& arguments, const std::string& log_file);
  ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills the program if it still runs.
  ~ChildProcess();
  // Kills all programs that this process has started, and returns when they
  // have ended; none starts any more. For a process that ends without running
  // destructors. Any thread.
  static void KillAll();

  pid_t pid() const { return pid_; }
  // A descriptor that becomes readable when the program has ended.
  int pidfd() const { return pidfd_; }
  void Signal(int signal) const;
  // The exit code, 128 + n for signal n. DEADLINE_EXCEEDED naming the program
  // when it still runs after `timeout`.
  absl::StatusOr<int> Wait(absl::Duration timeout);

 private:
  ChildProcess() = default;

  std::string program_;
  pid_t pid_ = -1;  // -1: none, or reaped
  int pidfd_ = -1;
  int exit_code_ = 0;
};

// Waits until `child` has written its port file at `path` and returns the
// numbers in it. UNAVAILABLE with the end of `log_file` when the child ends
// first; DEADLINE_EXCEEDED.
absl::StatusOr<std::map<std::string, uint64_t>> AwaitPortFile(
    const std::string& path, ChildProcess& child, const std::string& log_file,
    absl::Duration timeout);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_CHILD_PROCESS_H_

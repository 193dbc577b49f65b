// A program on a terminal of its own, as a person would run it.
#ifndef FARKV_TESTS_INTEGRATION_PTY_PROGRAM_H_
#define FARKV_TESTS_INTEGRATION_PTY_PROGRAM_H_

#include <sys/types.h>
#include <termios.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace farkv::testing {

class PtyProgram {
 public:
  // Aborts when there are no terminals.
  PtyProgram(const std::vector<std::string>& arguments, const std::string& term,
             unsigned short rows, unsigned short columns);
  // Kills it if it still runs.
  ~PtyProgram();
  PtyProgram(const PtyProgram&) = delete;
  PtyProgram& operator=(const PtyProgram&) = delete;

  void Type(const std::string& keys) const;
  void Resize(unsigned short rows, unsigned short columns) const;
  void Signal(int signal) const;
  // Reads on until what was written since the last Forget has `text`. False
  // after `timeout`, or when the program ended without.
  bool Await(const std::string& text,
             absl::Duration timeout = absl::Seconds(60));
  // Drops what was read.
  void Forget() { output_.clear(); }
  // Reads to the program's end; its wait status, -1 after `timeout`.
  int End(absl::Duration timeout = absl::Seconds(60));

  const std::string& output() const { return output_; }
  // The terminal echoes and edits lines, as it did at the start.
  bool IsRestored() const;

 private:
  // Takes what is there, or waits for it until `deadline`. False: it is over.
  bool Read(absl::Time deadline);

  int master_ = -1;
  int slave_ = -1;  // kept open: what is written last is not lost
  pid_t pid_ = -1;
  termios start_ = {};
  std::string output_;
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_INTEGRATION_PTY_PROGRAM_H_

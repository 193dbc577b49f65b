#include "tests/integration/pty_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/time/clock.h"

namespace farkv::testing {

PtyProgram::PtyProgram(const std::vector<std::string>& arguments,
                       const std::string& term, unsigned short rows,
                       unsigned short columns) {
  const winsize size = {rows, columns, 0, 0};
  if (openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) abort();
  fcntl(master_, F_SETFD, FD_CLOEXEC);
  tcgetattr(slave_, &start_);
  std::vector<char*> words;
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  std::vector<std::string> texts = {"TERM=" + term};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, "TERM=") &&
        !absl::StartsWith(*variable, "LINES=") &&
        !absl::StartsWith(*variable, "COLUMNS=")) {
      texts.emplace_back(*variable);
    }
  }
  std::vector<char*> variables;
  for (std::string& text : texts) variables.push_back(text.data());
  variables.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  if (login_tty(slave_) == 0) {
    execve(words[0], words.data(), variables.data());
  }
  _exit(127);
}

PtyProgram::~PtyProgram() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(slave_);
  close(master_);
}

void PtyProgram::Type(const std::string& keys) const {
  if (write(master_, keys.data(), keys.size()) < 0) abort();
}

void PtyProgram::Resize(unsigned short rows, unsigned short columns) const {
  const winsize size = {rows, columns, 0, 0};
  ioctl(master_, TIOCSWINSZ, &size);  // tells the program by SIGWINCH
}

void PtyProgram::Signal(int signal) const { kill(pid_, signal); }

bool PtyProgram::Read(absl::Time deadline) {
  const absl::Duration left =
      std::max(deadline - absl::Now(), absl::ZeroDuration());
  pollfd ready = {master_, POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) <= 0) {
    return false;
  }
  char buffer[4096];
  const ssize_t size = read(master_, buffer, sizeof(buffer));
  if (size <= 0) return false;
  output_.append(buffer, static_cast<size_t>(size));
  return true;
}

bool PtyProgram::Await(const std::string& text, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!absl::StrContains(output_, text)) {
    if (!Read(deadline)) return false;
  }
  return true;
}

int PtyProgram::End(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  int status = -1;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (absl::Now() > deadline) return -1;
    Read(std::min(deadline, absl::Now() + absl::Milliseconds(20)));
  }
  pid_ = -1;
  while (Read(absl::InfinitePast())) {
  }
  return status;
}

bool PtyProgram::IsRestored() const {
  termios now = {};
  tcgetattr(slave_, &now);
  return now.c_lflag == start_.c_lflag && now.c_iflag == start_.c_iflag &&
         now.c_oflag == start_.c_oflag;
}

}  // namespace farkv::testing

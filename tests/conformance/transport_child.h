// A test program that starts itself again in another role: a peer process that
// can be stopped, continued and killed. Its main() knows the roles.
#ifndef FARKV_TESTS_CONFORMANCE_TRANSPORT_CHILD_H_
#define FARKV_TESTS_CONFORMANCE_TRANSPORT_CHILD_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

extern char** environ;

namespace farkv {

// This program in another role, with pipes to and from it.
class Child {
 public:
  // `number`: its only argument, of which the role knows the meaning.
  Child(const char* role, int number) {
    int ends[2], input[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(input, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    std::string program = "/proc/self/exe", role_text = role;
    std::string number_text = absl::StrCat(number);
    char* arguments[] = {program.data(), role_text.data(), number_text.data(),
                         nullptr};
    EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments,
                          environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    close(input[0]);
    output_ = fdopen(ends[0], "r");
    input_ = input[1];
  }
  ~Child() {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    fclose(output_);
    close(input_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The number that the child prints next.
  uint32_t ReadNumber() {
    char line[32] = "";
    uint32_t number = 0;
    EXPECT_NE(fgets(line, sizeof(line), output_), nullptr);
    EXPECT_TRUE(absl::SimpleAtoi(line, &number));
    return number;
  }
  // Lets a child go on that waits in AwaitGo().
  void Go() const { EXPECT_EQ(write(input_, "g", 1), 1); }
  void Signal(int signal) const { kill(pid_, signal); }
  // Returns when none of its threads runs any more.
  void Stop() const {
    Signal(SIGSTOP);
    siginfo_t state{};
    waitid(P_PID, static_cast<id_t>(pid_), &state,
           WSTOPPED | WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
  int input_ = -1;
};

// ---- In the child.

// What ReadNumber() of the parent reads.
inline void Tell(int number) {
  std::printf("%d\n", number);
  std::fflush(stdout);
}
// Does nothing until the parent calls Go(); ends with the parent.
inline void AwaitGo() {
  char byte = 0;
  if (read(STDIN_FILENO, &byte, 1) != 1) std::_Exit(1);
}

// Roles of transport_ucx_rendezvous_test.cc.
[[noreturn]] void ReplyInPart(int rounds);
[[noreturn]] void RequestInPart(uint16_t port);

}  // namespace farkv

#endif  // FARKV_TESTS_CONFORMANCE_TRANSPORT_CHILD_H_

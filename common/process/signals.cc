#include "common/process/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace farkv {
namespace {

// Of the process, not of the object: the thread that waits for signals outlives
// main.
struct State {
  std::atomic<bool> draining{false};
  std::atomic<int> first{0};
  const int wake = eventfd(0, EFD_CLOEXEC);
};

State& GetState() {
  static State& state = *new State;
  return state;
}

sigset_t ShutdownSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// Sleeps until a signal of the set; sigwait only fails for a bad set.
int NextSignal() {
  const sigset_t set = ShutdownSet();
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  return signal;
}

void Wake() {
  const uint64_t one = 1;
  (void)!write(GetState().wake, &one, sizeof(one));
}

[[noreturn]] void EndAtOnce(int signal, const char* why) {
  char line[80];
  const int length = snprintf(line, sizeof(line),
                              "signal %d %s: ending at once\n", signal, why);
  (void)!write(STDERR_FILENO, line, static_cast<size_t>(length));
  _exit(128 + signal);
}

void SignalMain() {
  const int first = NextSignal();
  if (!GetState().draining) EndAtOnce(first, "before the start was over");
  GetState().first = first;
  Wake();
  EndAtOnce(NextSignal(), "behind another");
}

}  // namespace

ShutdownSignals::ShutdownSignals() {
  const sigset_t set = ShutdownSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  GetState();
  std::thread(SignalMain).detach();
}

void ShutdownSignals::DrainFromNow() { GetState().draining = true; }

void ShutdownSignals::Interrupt() { Wake(); }

int ShutdownSignals::Wait() {
  uint64_t count = 0;
  while (read(GetState().wake, &count, sizeof(count)) < 0) {
  }
  return GetState().first;
}

}  // namespace farkv

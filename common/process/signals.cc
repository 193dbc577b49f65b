#include "common/process/signals.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

namespace farkv {
namespace {

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

}  // namespace

ShutdownSignals::ShutdownSignals() {
  const sigset_t set = ShutdownSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int ShutdownSignals::Wait() {
  const int first = NextSignal();
  // Detached: it touches nothing of this object and dies with the process.
  std::thread([] { _exit(128 + NextSignal()); }).detach();
  return first;
}

}  // namespace farkv

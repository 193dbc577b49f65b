#include "common/process/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
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
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
}

ShutdownSignals::~ShutdownSignals() {
  close(signals_);
  close(wake_);
}

void ShutdownSignals::Interrupt() {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
}

int ShutdownSignals::Wait() {
  pollfd waits[] = {{signals_, POLLIN, 0}, {wake_, POLLIN, 0}};
  while (poll(waits, 2, -1) < 0) {
  }
  if (waits[0].revents == 0) {
    uint64_t count = 0;
    (void)!read(wake_, &count, sizeof(count));
    return 0;
  }
  const int first = NextSignal();
  // Detached: it touches nothing of this object and dies with the process.
  std::thread([] {
    const int second = NextSignal();
    static constexpr char kLine[] = "second signal: ending at once\n";
    (void)!write(STDERR_FILENO, kLine, sizeof(kLine) - 1);
    _exit(128 + second);
  }).detach();
  return first;
}

}  // namespace farkv

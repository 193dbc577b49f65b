// Ends a program on SIGTERM or SIGINT: at once while it starts; later the first
// one asks it to drain, and the second one ends it at once. SIGPIPE is ignored.
//
// Main may also be woken to look after something else (Interrupt).
// Construct it first in main, before any thread starts: it blocks the signals
// in the calling thread, and later threads inherit that. No handler ever runs;
// a thread of its own, which lives as long as the process, waits for them.
// One per process.
#ifndef FARKV_COMMON_PROCESS_SIGNALS_H_
#define FARKV_COMMON_PROCESS_SIGNALS_H_

namespace farkv {

class ShutdownSignals {
 public:
  ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // From here on something would be left behind: the next signal asks to drain.
  // Until this is called one ends the process with exit code 128 + its number.
  void DrainFromNow();
  // Sleeps until the first signal after DrainFromNow and returns its number.
  // The one behind it ends the process at once, as above. 0 when it was
  // interrupted instead, now or since the last call.
  int Wait();
  // Wakes Wait; any thread.
  void Interrupt();
};

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_SIGNALS_H_

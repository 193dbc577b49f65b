// Ends a program on SIGTERM or SIGINT: the first one asks it to drain, the
// second one ends it at once. SIGPIPE is ignored.
//
// Main may also be woken to look after something else (Interrupt).
// Construct it first in main, before any thread starts: it blocks the signals
// in the calling thread, and later threads inherit that. No handler ever runs.
// One per process.
#ifndef FARKV_COMMON_PROCESS_SIGNALS_H_
#define FARKV_COMMON_PROCESS_SIGNALS_H_

namespace farkv {

class ShutdownSignals {
 public:
  ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  ~ShutdownSignals();

  // Sleeps until the first signal and returns its number. From then on the
  // next one ends the process at once with exit code 128 + its number. 0 when
  // it was interrupted instead, now or since the last call.
  int Wait();
  // Wakes Wait; any thread.
  void Interrupt();

 private:
  int signals_ = -1;  // signalfd
  int wake_ = -1;     // eventfd
};

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_SIGNALS_H_

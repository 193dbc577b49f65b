// The fake device: a device as far away as a GPU is, for the -faults programs
// and tests.
//
// Its memory is PROT_NONE except while operations of its streams run, so host
// code that dereferences a device address dies of SIGSEGV. Its streams run
// late: nothing runs until a Notify or Synchronize asks for it, or many
// operations have gathered; then in order, on the stream's own thread. Host
// memory passed to an operation is therefore read and written late too. Freed
// memory stays inaccessible, until all 64 GiB of addresses have been used
// since.
//
// Weak point: while one operation runs, host code on another thread can touch
// the memory unseen.
#ifndef FARKV_KERNELS_DEVICE_FAKE_H_
#define FARKV_KERNELS_DEVICE_FAKE_H_

#include <cstddef>

#include "kernels/stream.h"

namespace farkv {

// How a test tells a stream of the fake device when to run. Thread-safe.
class FakeDeviceControl {
 public:
  virtual ~FakeDeviceControl() = default;

  // The control of `stream`, null when it is not one of the fake device's.
  static FakeDeviceControl* Of(Stream& stream);

  // From now on nothing runs but by Step. An entry that runs now finishes
  // first. Synchronize then blocks until another thread steps or resumes.
  virtual void Hold() = 0;

  // Runs the oldest entry (operation, copy or Notify callback), even of a held
  // stream, and returns when it has finished; false when there is none.
  virtual bool Step() = 0;

  // Ends Hold and runs everything that is queued.
  virtual void Resume() = 0;

  // Entries that have not finished.
  virtual size_t Queued() const = 0;
};

}  // namespace farkv

#endif  // FARKV_KERNELS_DEVICE_FAKE_H_

// Tells ThreadSanitizer about Debian's Abseil, which was built without it, so
// that a lock or a notification orders memory in its eyes too. Linked into
// every program of the tsan preset by --wrap (cmake/Tsan.cmake).
//
// Reads inside these calls are ignored: Abseil evaluates other threads'
// conditions in Unlock, while it holds the lock in its own way.
#include <cstdint>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// One call into Abseil on the synchronisation object at `address`.
class Call {
 public:
  explicit Call(void* address) : address_(address) {
    __tsan_release(address_);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  }
  ~Call() {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    __tsan_acquire(address_);
  }

 private:
  void* const address_;
};

// The flag that HasBeenNotified reads inline, behind the notification's mutex.
void* FlagOf(void* notification) {
  return static_cast<char*>(notification) + sizeof(absl::Mutex);
}

}  // namespace


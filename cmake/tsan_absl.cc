// Tells ThreadSanitizer about Debian's Abseil, which was built without it, so
// that a lock or a notification orders memory in its eyes too. Linked into
// every program of the tsan preset; cmake/Tsan.cmake reads the symbols below
// and has the linker send their calls here (--wrap).
//
// All of them take at most four machine words, so one signature serves all.
// Reads inside a call are ignored: Abseil evaluates other threads' conditions
// in Unlock, while it holds the lock in a way of its own.
#include <cstdint>

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

}  // namespace

#define FARKV_TSAN_CALL(symbol, address)                             \
  extern "C" uintptr_t __real_##symbol(void*, void*, void*, void*);  \
  extern "C" uintptr_t __wrap_##symbol(void* self, void* a, void* b, \
                                       void* c) {                    \
    Call call(address);                                              \
    return __real_##symbol(self, a, b, c);                           \
  }

// absl::Mutex
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex4LockEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex6UnlockEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex7TryLockEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex10ReaderLockEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex12ReaderUnlockEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex13ReaderTryLockEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE, self)
FARKV_TSAN_CALL(
    _ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE,
    self)
FARKV_TSAN_CALL(
    _ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE, self)
FARKV_TSAN_CALL(
    _ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE,
    self)
FARKV_TSAN_CALL(
    _ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE,
    self)
FARKV_TSAN_CALL(_ZN4absl7debian35Mutex14ReaderLockWhenERKNS0_9ConditionE, self)

// absl::CondVar: what it orders is the mutex, its first argument.
FARKV_TSAN_CALL(_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE, a)
FARKV_TSAN_CALL(
    _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, a)
FARKV_TSAN_CALL(
    _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, a)

// absl::BlockingCounter
FARKV_TSAN_CALL(_ZN4absl7debian315BlockingCounter14DecrementCountEv, self)
FARKV_TSAN_CALL(_ZN4absl7debian315BlockingCounter4WaitEv, self)

// absl::Notification: HasBeenNotified reads its flag inline, behind a mutex of
// one word, so the flag's address is what everybody orders by.
FARKV_TSAN_CALL(_ZN4absl7debian312Notification6NotifyEv,
                static_cast<char*>(self) + sizeof(void*))
FARKV_TSAN_CALL(_ZNK4absl7debian312Notification19WaitForNotificationEv,
                static_cast<char*>(self) + sizeof(void*))
FARKV_TSAN_CALL(
    _ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE,
    static_cast<char*>(self) + sizeof(void*))
FARKV_TSAN_CALL(
    _ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE,
    static_cast<char*>(self) + sizeof(void*))

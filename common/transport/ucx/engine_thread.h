// The role "this is the engine's thread", so that Clang's thread-safety
// analysis rejects a UCX call from anywhere else. It costs nothing at run
// time. Callbacks that UCX makes run inside progress and assert the role.
#ifndef FARKV_COMMON_TRANSPORT_UCX_ENGINE_THREAD_H_
#define FARKV_COMMON_TRANSPORT_UCX_ENGINE_THREAD_H_

#include "absl/base/thread_annotations.h"

namespace farkv {

class ABSL_LOCKABLE EngineThreadRole {
 public:
  void Enter() ABSL_EXCLUSIVE_LOCK_FUNCTION() {}
  void Leave() ABSL_UNLOCK_FUNCTION() {}
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
};

// One name for every engine: an engine's members are reached only through it.
inline EngineThreadRole engine_thread;

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_ENGINE_THREAD_H_

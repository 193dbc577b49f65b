// The normal program knows no fault flags.
#include "gpu_worker/worker_flags.h"

namespace farkv {

void RegisterFaultFlags(Flags&, EngineOptions&) {}

}  // namespace farkv

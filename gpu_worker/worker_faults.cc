// Flags of farkv-worker-faults: injected faults and weakened checks, for tests
// and benches only.
#include "gpu_worker/worker_flags.h"

namespace farkv {

void RegisterFaultFlags(Flags& flags, EngineOptions& options) {
  flags.AddText("faults", &options.tiering.fault_spec,
                "What the fault decorator injects, as seed=7,drop=0.01");
  flags.AddDuration("fetch-timeout", &options.tiering.fetch_timeout,
                    {absl::Milliseconds(1), absl::Hours(24),
                     "a fetch that is given no time, or all, shows nothing"},
                    "Longest wait for one fetch; it is tried twice");
  flags.AddSwitch("skip-row-checks", &options.tiering.skip_row_checks,
                  "Use fetched and mapped rows without checking them");
}

}  // namespace farkv

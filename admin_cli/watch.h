// Repeats a command (--watch).
#ifndef FARKV_ADMIN_CLI_WATCH_H_
#define FARKV_ADMIN_CLI_WATCH_H_

#include <functional>
#include <ostream>

#include "absl/time/time.h"
#include "admin_cli/options.h"

namespace farkv {

// Runs `run` once, or, when watching is asked for, again and again, waiting
// with `wait` in between. Before a round `out` is cleared when it is a
// terminal; else a round after the first begins with a line "---", which YAML
// readers know. Returns the exit code of the last round. Peers that fail are
// asked again.
int RunWatched(const WatchOptions& options, bool is_terminal, std::ostream& out,
               const std::function<int()>& run,
               const std::function<void(absl::Duration)>& wait);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_WATCH_H_

#include "admin_cli/watch.h"

namespace farkv {
namespace {

// Cursor home, then everything below it erased.
constexpr const char* kClear = "\x1b[H\x1b[J";

}  // namespace

int RunWatched(const WatchOptions& options, bool is_terminal, std::ostream& out,
               const std::function<int()>& run,
               const std::function<void(absl::Duration)>& wait) {
  if (!options.enabled) return run();
  for (int64_t round = 1;; ++round) {
    if (is_terminal) {
      out << kClear;
    } else if (round > 1) {
      out << "---\n";
    }
    const int code = run();
    out << std::flush;
    if (round == options.count) return code;
    wait(options.interval);
  }
}

}  // namespace farkv

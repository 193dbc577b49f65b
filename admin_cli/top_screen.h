// `top` on a whole terminal, by ncurses.
#ifndef FARKV_ADMIN_CLI_TOP_SCREEN_H_
#define FARKV_ADMIN_CLI_TOP_SCREEN_H_

#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "admin_cli/options.h"
#include "admin_cli/top_sample.h"

namespace farkv {

// Why the terminal cannot be drawn on: TERM is unset, not known here, or has no
// way to place the cursor. Empty: it can.
std::string WhyNoScreen();

// Shows rounds, taken on a thread of its own, until q is pressed or
// `options.top.count` of them were shown, and returns the exit code of the
// last. The terminal is put back then, and before SIGINT, SIGTERM, SIGHUP or
// SIGQUIT ends the process. Nothing when the terminal could not be opened.
// For main alone.
std::optional<int> ShowTopScreen(const CliOptions& options,
                                 TopSampler& sampler);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_TOP_SCREEN_H_

// Whether an address could be listened on now.
#ifndef FARKV_ADMIN_CLI_LISTEN_PROBE_H_
#define FARKV_ADMIN_CLI_LISTEN_PROBE_H_

#include <string>

#include "absl/status/status.h"

namespace farkv {

// Binds "host:port" and gives it back at once. UNAVAILABLE with the system's
// reason when it is taken or not of this machine.
absl::Status TryListen(const std::string& address);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_LISTEN_PROBE_H_

#include "common/transport/ucx/name_resolver.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace farkv {
namespace {

struct Answer {
  absl::Notification done;
  absl::StatusOr<SocketAddress> address;
};

}  // namespace

absl::StatusOr<SocketAddress> NameResolver::Resolve(const std::string& host,
                                                    uint16_t port) const {
  if (const auto numeric = ParseNumericAddress(host, port)) return *numeric;
  if (running_->fetch_add(1) >= kMaxLookups) {
    --*running_;
    return absl::UnavailableError(absl::StrCat(
        "host \"", host, "\" is not looked up: ", kMaxLookups,
        " lookups have not ended yet; does the name server answer?"));
  }
  auto answer = std::make_shared<Answer>();
  std::thread([answer, lookup = lookup_, running = running_, host, port] {
    answer->address = lookup(host, port);
    --*running;
    answer->done.Notify();
  }).detach();
  if (!answer->done.WaitForNotificationWithTimeout(timeout_)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "cannot resolve host \"", host, "\" within ",
        absl::FormatDuration(timeout_), "; does the name server answer?"));
  }
  return answer->address;
}

}  // namespace farkv

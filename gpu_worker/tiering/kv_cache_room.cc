// Room in T0, and waiting for what makes some.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "gpu_worker/tiering/kv_cache_impl.h"
#include "gpu_worker/tiering/tier_moves.h"

namespace farkv {

bool KvCache::Impl::MakeRoom(int64_t sets) {
  if (lines.free_sets() >= sets) return true;
  if (remote == nullptr) return false;
  for (auto& [id, sequence] : sequences) {
    if (DropForRoom(*sequence, sets, lines)) return true;
  }
  return false;
}

// Also of sequences that are parked: their pages are to leave T0.
void KvCache::Impl::Advance() {
  remote->Poll(sequences, lines);
  for (auto& [id, sequence] : sequences) remote->Advance(*sequence, lines);
}

bool KvCache::Impl::WaitForRoom(absl::Duration timeout) {
  if (remote == nullptr) return false;
  // "Nothing is to come" is believed when it is said twice: a node may come
  // back, or a pause end, between the two halves of the first look.
  for (int look = 0; look < 2; ++look) {
    Advance();  // what is due again is under way from here on
    // What has ended since the step found T0 full is not: it may fit by now.
    if (remote->TakeProgress()) return true;
    if (!remote->WaitForProgress(sequences, timeout)) continue;
    Advance();
    return true;
  }
  return false;
}

void KvCache::Impl::WaitForNodes(absl::Duration timeout) {
  if (remote == nullptr) return;
  remote->Poll(sequences, lines);  // what has come is no news
  remote->WaitForEvents(timeout);
}

// For errors: why nothing leaves T0.
std::string KvCache::Impl::AboutNodes() const {
  std::string text;
  if (remote == nullptr) return text;
  for (const auto& link : remote->links()) {
    if (link->healthy()) continue;
    absl::StrAppend(&text, "; memory node ", link->node_id(), " (",
                    link->address(), ") is lost");
  }
  if (!remote->last_refusal().empty()) {
    absl::StrAppend(&text, "; ", remote->last_refusal());
  }
  return text;
}

absl::Status KvCache::Impl::Drain(absl::Duration timeout) {
  if (remote == nullptr) return absl::OkStatus();
  // How often a refused store is looked at while nothing is under way.
  constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
  const absl::Time end = Clock::Boottime().Now() + timeout;
  for (;;) {
    // What ends behind this is an event that the next turn takes.
    const bool was_idle = remote->Idle();
    remote->Poll(sequences, lines);
    int64_t unstored = 0;
    for (auto& [id, sequence] : sequences) {
      remote->Advance(*sequence, lines);
      unstored += RemoteTier::UnstoredPages(*sequence);
    }
    const bool idle = remote->Idle();
    if (!was_idle && idle) continue;
    if (idle && unstored == 0) return absl::OkStatus();
    const absl::Duration left = end - Clock::Boottime().Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("Drain: after ", absl::FormatDuration(timeout), " ",
                       unstored, " pages are not stored; operations ",
                       idle ? "have ended" : "are under way"));
    }
    remote->WaitForEvents(idle ? std::min(left, kRetryPause) : left);
  }
}
}  // namespace farkv

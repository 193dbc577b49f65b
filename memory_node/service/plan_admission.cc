#include "memory_node/service/plan_admission.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"

namespace farkv {
namespace {

constexpr absl::Duration kCallAgainAfter = absl::Milliseconds(500);

}  // namespace

absl::Status TooManyCalls(int count, const char* what) {
  return WithRetryAfter(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                       count, " ", what,
                                       " are queued or running, as many as "
                                       "this node takes")),
                                   ErrorReason::kQueueFull),
                        kCallAgainAfter);
}

absl::Status PlanAdmission::TryEnter(const std::string& session,
                                     bool compresses) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_session_.find(session);
  if (found != by_session_.end() && found->second >= limits_.per_session) {
    return TooManyCalls(found->second, "plans of this session");
  }
  int& count = compresses ? compressing_ : plans_;
  if (count >= (compresses ? limits_.compressing : limits_.plans)) {
    return TooManyCalls(count, compresses ? "plans that compress" : "plans");
  }
  ++count;
  ++by_session_[session];
  return absl::OkStatus();
}

void PlanAdmission::Leave(const std::string& session, bool compresses) {
  absl::MutexLock lock(&mutex_);
  --(compresses ? compressing_ : plans_);
  const auto found = by_session_.find(session);
  if (--found->second == 0) by_session_.erase(found);
}

}  // namespace farkv

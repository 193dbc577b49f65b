// The plans that a NodeLink sends its node: answers, repetition, mapped places.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {

// Whether the node may have done it or not. A refusal that states a reason is
// an answer.
bool NodeLink::IsUnanswered(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
          absl::IsAborted(status)) &&
         ReasonOf(status) == ErrorReason::kUnspecified;
}

// After an answer that never came the same call is repeated: the node then
// gives the reply it has kept (or ABORTED while the first still runs).
absl::StatusOr<TierPlanResult> NodeLink::Apply(RemoteSession& session,
                                               const TierPlanCall& call) {
  if (!healthy()) {
    return absl::UnavailableError(
        absl::StrCat("memory node ", options_.address, " is lost"));
  }
  absl::StatusOr<TierPlanResult> result =
      control_.apply_tier_plan(call, CallTimeout());
  // A queue that is full says nothing of the first try.
  if (session.unanswered.has_value() &&
      ReasonOf(result.status()) == ErrorReason::kQueueFull) {
    result = absl::UnavailableError(result.status().message());
  }
  if (IsUnanswered(result.status())) {
    session.unanswered = call;
    session.repeat_at = clock_.Now() + options_.repeat_pause;
  } else {
    session.unanswered.reset();
    ++session.next_number;
  }
  if (result.ok()) NoteDraining(result->draining);
  return result;
}

void NodeLink::RunEvict(EvictCommand command) {
  TierPlanCall call;
  call.evictions = std::move(command.evictions);
  call.free = std::move(command.free);
  absl::Status status =
      RunPlan(command.sequence, command.session, std::move(call));
  options_.inbox->Push(PagesEvicted{command.sequence, options_.index,
                                    std::move(command.pages),
                                    std::move(status)});
}

// A call that was sent without an answer is repeated in place of `own`, which
// then counts as refused: its caller will ask again.
absl::Status NodeLink::RunPlan(SequenceId sequence,
                               const std::shared_ptr<RemoteSession>& session,
                               TierPlanCall own) {
  const bool repeat = session->unanswered.has_value();
  TierPlanCall call;
  if (repeat) {
    call = *session->unanswered;
  } else {
    call = own;
    call.session = session->id;
    call.epoch = epoch();
    call.sequence_number = session->next_number;
  }
  const absl::StatusOr<TierPlanResult> result = Apply(*session, call);
  const bool reserves = !call.reserve.empty();
  if (reserves) ReportReserved(sequence, call, result);
  if (!call.tier_changes.empty()) {
    ReportMoved(sequence, session, call.tier_changes, result,
                session->unanswered.has_value());
  }
  if (!repeat) return result.status();
  const absl::StatusOr<TierPlanResult> passed_over(
      absl::AbortedError("an earlier plan had to be repeated first"));
  if (!own.reserve.empty() && !reserves) {
    ReportReserved(sequence, own, passed_over);
  }
  if (!own.tier_changes.empty()) {
    ReportMoved(sequence, session, own.tier_changes, passed_over, false);
  }
  return passed_over.status();
}

void NodeLink::ReportReserved(SequenceId sequence, const TierPlanCall& call,
                              const absl::StatusOr<TierPlanResult>& result) {
  PagesReserved reserved{
      sequence, options_.index, call.reserve, std::vector<PagePlacement>(), {}};
  if (!result.ok()) {
    reserved.placements = result.status();
  } else if (absl::Status s = CheckPlaces(reserved.asked, result->reserved);
             !s.ok()) {
    reserved.placements = s;
  } else {
    reserved.placements = result->reserved;
    if (absl::Status mapped = MapPages(reserved); !mapped.ok()) {
      reserved.placements = mapped;
    }
  }
  options_.inbox->Push(std::move(reserved));
}

void NodeLink::ReportMoved(SequenceId sequence,
                           const std::shared_ptr<RemoteSession>& session,
                           const std::vector<TierChange>& asked,
                           const absl::StatusOr<TierPlanResult>& result,
                           bool unanswered) {
  PagesMoved moved{
      sequence,  options_.index, session, asked, std::vector<PagePlacement>(),
      unanswered};
  std::vector<PageName> names;
  for (const TierChange& change : asked) names.push_back(change.page);
  if (!result.ok()) {
    moved.moved = result.status();
  } else if (absl::Status s = CheckPlaces(names, result->moved); !s.ok()) {
    moved.moved = s;
  } else {
    moved.moved = result->moved;
  }
  options_.inbox->Push(std::move(moved));
}

absl::Status NodeLink::CheckPlaces(
    std::span<const PageName> asked,
    std::span<const PagePlacement> placements) const {
  if (placements.size() != asked.size()) {
    return absl::InternalError(absl::StrCat(
        "memory node ", options_.address, " answered ", placements.size(),
        " places for ", asked.size(), " pages"));
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    const PageName& placed = placements[i].page;
    if (placed == asked[i]) continue;
    return absl::InternalError(absl::StrCat(
        "memory node ", options_.address, " answered a place of layer ",
        placed.layer, ", page ", placed.page_index, ", asked was layer ",
        asked[i].layer, ", page ", asked[i].page_index));
  }
  return absl::OkStatus();
}

// With --cold=auto a page that cannot be mapped is fetched instead. The first
// failure ends the mapping of a plan: while a try waits for its node, no lease
// is renewed and nobody connects again.
absl::Status NodeLink::MapPages(PagesReserved& reserved) {
  if (map_ == nullptr) return absl::OkStatus();
  const size_t page_bytes = PageLayout::T1(options_.geometry).stride;
  const auto new_ticket = [this]() -> absl::StatusOr<NodeMap::Ticket> {
    FARKV_ASSIGN_OR_RETURN(SessionGrant grant, OpenOne(*own_session_));
    return NodeMap::Ticket{own_session_->id, grant.token};
  };
  absl::Status status;
  for (const PagePlacement& place : *reserved.placements) {
    status = CheckRunning();
    if (!status.ok()) break;
    absl::StatusOr<MappedPage> page =
        map_->Find(place.slab_id, place.slab_offset, page_bytes, new_ticket);
    status = page.status();
    if (!status.ok()) break;
    reserved.maps.push_back(*std::move(page));
  }
  reserved.maps.resize(reserved.placements->size());
  if (options_.tiering.cold == ColdMode::kMap) return status;
  return absl::OkStatus();
}

absl::Time NodeLink::NextRepeat() const {
  absl::Time next = absl::InfiniteFuture();
  for (const OpenedSession& opened : sessions_) {
    if (!opened.session->unanswered.has_value()) continue;
    next = std::min(next, opened.session->repeat_at);
  }
  return next;
}

// A plan that was sent without an answer may have taken effect: a page that it
// moved is readable at its old place for one more lease only. One at a time, in
// turn: each may take a whole call timeout, and renewals and commands come in
// between.
void NodeLink::RepeatOne() {
  const absl::Time due = NextRepeat();
  for (const OpenedSession& opened : sessions_) {
    if (!opened.session->unanswered.has_value()) continue;
    if (opened.session->repeat_at > due) continue;
    const OpenedSession chosen = opened;
    // Also when the call is refused before it is sent.
    chosen.session->repeat_at = clock_.Now() + options_.repeat_pause;
    return RunPlan(chosen.sequence, chosen.session, TierPlanCall())
        .IgnoreError();
  }
}

}  // namespace farkv

// Sessions and leases; the other parts of the class are in directory_*.cc.
#include "memory_node/directory/directory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/handshake.h"

namespace farkv {
namespace {

constexpr size_t kRememberedExpiries = 1024;
constexpr size_t kMaxNameBytes = 256;

absl::Status CheckNames(const OpenSessionCall& call) {
  if (call.tenant.size() <= kMaxNameBytes &&
      call.worker_id.size() <= kMaxNameBytes) {
    return absl::OkStatus();
  }
  return WithReason(
      absl::InvalidArgumentError(absl::StrCat(
          "tenant and worker id have ", call.tenant.size(), " and ",
          call.worker_id.size(), " bytes, at most ", kMaxNameBytes)),
      ErrorReason::kInvalidField);
}

// A page has to lie in one slab and to travel in one message.
absl::Status CheckPageSize(const KvGeometry& geometry, size_t slab_bytes) {
  const size_t stride = PageLayout::T1(geometry).stride;
  const size_t most = std::min<size_t>(slab_bytes, kMaxMessageBytes);
  if (stride <= most) return absl::OkStatus();
  return WithReason(absl::InvalidArgumentError(absl::StrCat(
                        "a page of ", geometry.ToString(), " takes ", stride,
                        " bytes; a slab of this node has ", slab_bytes,
                        ", a message ", kMaxMessageBytes)),
                    ErrorReason::kInvalidField);
}

}  // namespace

Directory::Directory(const DirectoryOptions& options, PagePool& pool,
                     const Clock& clock, T2Tier t2)
    : options_(options), pool_(pool), t2_(std::move(t2)), clock_(clock) {}

Session* Directory::Find(const SessionId& id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

bool Directory::Expired(const Session& session) const {
  return clock_.Now() >= session.lease_end;
}

absl::Status Directory::CheckEpoch(Epoch epoch) const {
  if (epoch == options_.epoch) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "epoch of the call is ", epoch.value,
                        ", this node lives in ", options_.epoch.value)),
                    ErrorReason::kStaleEpoch);
}

absl::Status Directory::Unknown(const SessionId& id) const {
  if (std::find(expired_.begin(), expired_.end(), id) != expired_.end()) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "the lease of session ", SessionHandle(id), " ran out")),
        ErrorReason::kLeaseExpired);
  }
  return WithReason(absl::NotFoundError(absl::StrCat(
                        "no session ", SessionHandle(id), " here")),
                    ErrorReason::kNotFound);
}

absl::Duration Directory::SetLease(Session& session, absl::Duration lease) {
  const absl::Duration granted = std::min(lease, options_.max_lease);
  const absl::Time end = clock_.Now() + granted;
  // A mapped reader may count on the longer lease it was given before.
  if (end < session.lease_end) return granted;
  lease_ends_.erase({session.lease_end, session.id});
  session.lease = granted;
  session.lease_end = end;
  lease_ends_.insert({session.lease_end, session.id});
  return granted;
}

SessionGrant Directory::Grant(Session& session, absl::Duration lease) {
  const absl::Duration granted = SetLease(session, lease);
  tokens_.erase(session.token);
  session.token = SessionId::Random().ToBytes();
  tokens_[session.token].owner = {session.tenant, session.worker_id,
                                  session.data_timeout, session.mapped};
  SessionGrant grant;
  grant.handshake = options_.handshake;
  grant.epoch = options_.epoch;
  grant.lease = granted;
  grant.token = session.token;
  grant.page_stride = session.stride;
  return grant;
}

absl::StatusOr<SessionGrant> Directory::Open(const OpenSessionCall& call) {
  FARKV_RETURN_IF_ERROR(
      CheckHandshake(options_.handshake, call.handshake, call.bitwise));
  FARKV_RETURN_IF_ERROR(CheckNames(call));
  if (absl::Status valid = call.geometry.Validate(); !valid.ok()) {
    return WithReason(valid, ErrorReason::kInvalidField);
  }
  FARKV_RETURN_IF_ERROR(CheckPageSize(call.geometry, pool_.slab_bytes()));
  absl::MutexLock lock(&mutex_);
  ExpireSessions();
  if (Session* session = Find(call.session); session != nullptr) {
    if (session->tenant != call.tenant) {
      return absl::PermissionDeniedError(absl::StrCat(
          "session ", SessionHandle(call.session), " is another tenant's"));
    }
    if (session->geometry != call.geometry) {
      return WithReason(absl::FailedPreconditionError(absl::StrCat(
                            "session ", SessionHandle(call.session),
                            " is open with ", session->geometry.ToString(),
                            ", not ", call.geometry.ToString())),
                        ErrorReason::kGeometryMismatch);
    }
    session->worker_id = call.worker_id;
    session->data_timeout = call.data_timeout;
    SessionGrant grant = Grant(*session, call.lease);
    grant.resumed = true;
    grant.last_sequence_number = session->replies.last();
    return grant;
  }
  if (draining_ && !call.continues_request) {
    return WithReason(
        absl::UnavailableError("this node is draining: no new sessions"),
        ErrorReason::kDraining);
  }
  if (sessions_.size() >= options_.max_sessions) {
    return WithRetryAfter(
        WithReason(absl::ResourceExhaustedError(absl::StrCat(
                       sessions_.size(), " sessions are open, at most ",
                       options_.max_sessions)),
                   ErrorReason::kQueueFull),
        options_.retry_after);
  }
  auto session = std::make_unique<Session>();
  session->id = call.session;
  session->instance = next_instance_++;
  session->tenant = call.tenant;
  session->worker_id = call.worker_id;
  session->data_timeout = call.data_timeout;
  session->geometry = call.geometry;
  session->stride = PageLayout::T1(call.geometry).stride;
  session->opened = clock_.Now();
  SessionGrant grant = Grant(*session, call.lease);
  sessions_.emplace(call.session, std::move(session));
  return grant;
}

absl::StatusOr<RenewResult> Directory::Renew(
    Epoch epoch, std::span<const SessionId> sessions, absl::Duration lease) {
  FARKV_RETURN_IF_ERROR(CheckEpoch(epoch));
  if (lease <= absl::ZeroDuration()) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "lease is ", absl::FormatDuration(lease), ", must be positive")),
        ErrorReason::kInvalidField);
  }
  RenewResult result;
  result.pressure = pool_.pressure();
  absl::MutexLock lock(&mutex_);
  ExpireSessions();
  for (const SessionId& id : sessions) {
    LeaseRenewal& renewal = result.renewals.emplace_back();
    renewal.session = id;
    if (Session* session = Find(id); session != nullptr) {
      renewal.lease = SetLease(*session, lease);
    } else {
      renewal.status = Unknown(id);
    }
  }
  result.draining = draining_;
  return result;
}

absl::StatusOr<uint64_t> Directory::Close(const SessionId& id, Epoch epoch) {
  FARKV_RETURN_IF_ERROR(CheckEpoch(epoch));
  absl::MutexLock lock(&mutex_);
  ExpireSessions();
  Session* session = Find(id);
  if (session == nullptr) return uint64_t{0};
  const uint64_t freed = session->pages.size();
  for (const auto& [name, entry] : session->pages) ReleaseMemory(entry);
  Forget(*session);
  return freed;
}

void Directory::Forget(Session& session) {
  lease_ends_.erase({session.lease_end, session.id});
  tokens_.erase(session.token);
  sessions_.erase(session.id);
}

void Directory::ExpireSessions() {
  const absl::Time now = clock_.Now();
  while (!lease_ends_.empty() && lease_ends_.begin()->first <= now) {
    Session& session = *Find(lease_ends_.begin()->second);
    // A mapped reader may believe in its lease for as long again.
    const absl::Time until = session.lease_end + session.lease;
    for (const auto& [name, entry] : session.pages) {
      PoolOf(entry).Quarantine(entry.handle, until, session.id).IgnoreError();
    }
    ++expired_total_;
    expired_.push_back(session.id);
    if (expired_.size() > kRememberedExpiries) expired_.pop_front();
    unreported_.push_back({session.id, session.tenant});
    Forget(session);
  }
}

Directory::SweepResult Directory::Sweep() {
  SweepResult result;
  {
    absl::MutexLock lock(&mutex_);
    ExpireSessions();
    result.revoked = std::exchange(unreported_, {});
    if (!lease_ends_.empty()) result.next = lease_ends_.begin()->first;
  }
  result.next = std::min(result.next, pool_.Sweep());
  if (t2_.pool != nullptr) {
    result.next = std::min(result.next, t2_.pool->Sweep());
  }
  return result;
}

void Directory::SetDraining(bool draining) {
  absl::MutexLock lock(&mutex_);
  draining_ = draining;
}

bool Directory::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

bool Directory::WaitUntilEmpty(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto empty = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return sessions_.empty();
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&empty), timeout);
}

}  // namespace farkv

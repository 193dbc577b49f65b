// What a memory node must do about leases and pages, in as few words as it can
// be said: sessions with a lease and one page each, pages that are free, used,
// in quarantine, or released under a pin. lease_world.h holds the real
// directory and pool to it. Time is in whole seconds from the start.
//
// Leases and quarantines end when the node looks (Expire, Sweep), as there: a
// page that nobody asked for since its quarantine ended is free a moment later.
#ifndef FARKV_TESTS_MODEL_LEASE_ORACLE_H_
#define FARKV_TESTS_MODEL_LEASE_ORACLE_H_

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/rpc/error_reason.h"

namespace farkv {

struct OraclePage {
  enum class State { kFree, kUsed, kQuarantined, kReleased };
  State state = State::kFree;
  int pins = 0;
  Generation generation;
  int owner = -1;  // the last one
};

struct OracleSession {
  bool present = false;  // also when its lease is over and nobody has looked
  int life = 0;          // counts its openings
  int lease = 0, end = 0;
  int page = -1;
  bool stored = false, storing = false;
  bool ever_expired = false;
};

// A status as errors are documented: code and reason.
struct Verdict {
  absl::StatusCode code = absl::StatusCode::kOk;
  ErrorReason reason = ErrorReason::kUnspecified;

  bool ok() const { return code == absl::StatusCode::kOk; }
  static Verdict NotFound() {
    return {absl::StatusCode::kNotFound, ErrorReason::kNotFound};
  }
  static Verdict Stale(ErrorReason reason) {
    return {absl::StatusCode::kFailedPrecondition, reason};
  }
};

struct LeaseOracle {
  static constexpr int kSessions = 2;

  explicit LeaseOracle(int num_pages) : pages(static_cast<size_t>(num_pages)) {
    for (int page = num_pages - 1; page >= 0; --page) free.push_back(page);
  }

  OracleSession& at(int s) { return sessions[static_cast<size_t>(s)]; }
  const OracleSession& at(int s) const {
    return sessions[static_cast<size_t>(s)];
  }
  OraclePage& page(int p) { return pages[static_cast<size_t>(p)]; }
  const OraclePage& page(int p) const { return pages[static_cast<size_t>(p)]; }

  void Open(int s, int lease) {
    OracleSession& session = at(s);
    if (!session.present) {
      OracleSession opened;
      opened.present = true;
      opened.life = session.life + 1;
      opened.ever_expired = session.ever_expired;
      session = opened;
    }
    Extend(s, lease);
  }
  // The end of a lease never moves backwards.
  void Extend(int s, int lease) {
    if (now + lease < at(s).end) return;
    at(s).lease = lease;
    at(s).end = now + lease;
  }
  void Expire() {
    for (;;) {
      int first = -1;
      for (int s = 0; s < kSessions; ++s) {
        if (!at(s).present || at(s).end > now) continue;
        if (first < 0 || at(s).end < at(first).end) first = s;
      }
      if (first < 0) return;
      OracleSession& session = at(first);
      session.present = false;
      session.ever_expired = true;
      if (session.page < 0) continue;
      page(session.page).state = OraclePage::State::kQuarantined;
      const std::pair<int, int> entry{session.end + session.lease,
                                      session.page};
      quarantine.insert(
          std::upper_bound(
              quarantine.begin(), quarantine.end(), entry,
              [](const auto& a, const auto& b) { return a.first < b.first; }),
          entry);
    }
  }
  void Sweep() {
    while (!quarantine.empty() && quarantine.front().first <= now) {
      Release(quarantine.front().second);
      quarantine.erase(quarantine.begin());
    }
  }
  void Take(int s, int p, Generation generation) {
    free.erase(std::find(free.begin(), free.end(), p));
    page(p).state = OraclePage::State::kUsed;
    page(p).generation = generation;
    page(p).owner = s;
    at(s).page = p;
    at(s).stored = at(s).storing = false;
  }
  void Release(int p) {
    page(p).state = OraclePage::State::kReleased;
    SettlePins(p);
  }
  void Pin(int p) { ++page(p).pins; }
  void Unpin(int p) {
    --page(p).pins;
    SettlePins(p);
  }
  void FreePage(int s) {
    Release(at(s).page);
    at(s).page = -1;
  }
  void Close(int s) {
    if (at(s).page >= 0) Release(at(s).page);
    at(s).present = false;
  }

  // How calls for a session that is not there end.
  Verdict Gone(int s) const {
    return at(s).ever_expired ? Verdict::Stale(ErrorReason::kLeaseExpired)
                              : Verdict::NotFound();
  }
  // How a store or a fetch of the session's page under `generation` begins.
  Verdict Access(int s, Generation generation, bool store) const {
    const OracleSession& session = at(s);
    if (!session.present) return Gone(s);
    if (session.end <= now) return Verdict::Stale(ErrorReason::kLeaseExpired);
    if (session.page < 0) return Verdict::NotFound();
    if (page(session.page).generation != generation) {
      return Verdict::Stale(ErrorReason::kStaleGeneration);
    }
    if (store && session.storing) return {absl::StatusCode::kAborted};
    if (!store && !session.stored) return Verdict::NotFound();
    return {};
  }
  // How a store ends that began in `life` under `generation`.
  Verdict Finish(int s, int life, Generation generation) const {
    const OracleSession& session = at(s);
    if (!session.present || session.life != life) return Gone(s);
    if (session.page < 0) return Verdict::NotFound();
    if (page(session.page).generation == generation) return {};
    return Verdict::Stale(ErrorReason::kStaleGeneration);
  }

  int now = 0;
  std::array<OracleSession, kSessions> sessions;
  std::vector<OraclePage> pages;
  std::vector<int> free;                        // in the order of the releases
  std::vector<std::pair<int, int>> quarantine;  // end -> page, in order of end

 private:
  void SettlePins(int p) {
    if (page(p).state != OraclePage::State::kReleased) return;
    if (page(p).pins > 0) return;
    page(p).state = OraclePage::State::kFree;
    free.push_back(p);
  }
};

}  // namespace farkv

#endif  // FARKV_TESTS_MODEL_LEASE_ORACLE_H_

// The control plane's operations; those on rows are in lease_world_rows.cc,
// what is compared after each in lease_world_audit.cc.
#include "tests/model/lease_world.h"

#include <utility>

namespace farkv {

LeaseWorld::LeaseWorld(const LeaseWorldOptions& options)
    : options_(options),
      oracle_(options.num_pages),
      pool_(
          PoolOptions(options.num_pages),
          [this](size_t bytes) {
            absl::StatusOr<SlabMemory> slab = AllocateHeapSlab(bytes);
            memory_ = slab->data();
            return slab;
          },
          clock_),
      directory_(NodeOptions(), pool_, clock_) {}

PagePoolOptions LeaseWorld::PoolOptions(int num_pages) {
  PagePoolOptions options;
  options.slab_bytes = static_cast<size_t>(num_pages) * Stride();
  options.capacity_bytes = options.slab_bytes;
  options.high_watermark = 10000;
  return options;
}

DirectoryOptions LeaseWorld::NodeOptions() {
  DirectoryOptions options;
  options.epoch = kEpoch;
  options.max_lease = absl::Hours(1);
  return options;
}

// A worker may send whatever it likes late, so nothing but the mapped read asks
// whether its lease holds. It frees and closes nothing that it reads in place.
bool LeaseWorld::Enabled(LeaseOp op) const {
  const Worker& first = workers_[0];
  const Worker& other = workers_[1];
  switch (op) {
    case LeaseOp::kTick:
    case LeaseOp::kJump:
    case LeaseOp::kSweep:
      return true;
    case LeaseOp::kOpen:
      return !first.open || oracle_.now >= first.fence;
    case LeaseOp::kReserve:
      return first.open && first.page < 0;
    case LeaseOp::kBeginStore:
      return first.page >= 0 && !store_.has_value();
    case LeaseOp::kFinishStore:
      return store_.has_value();
    case LeaseOp::kFree:
      return first.page >= 0 && !read_.has_value();
    case LeaseOp::kClose:
      return first.open && !read_.has_value();
    case LeaseOp::kSendRenewal:
      return first.open && !renewal_.has_value();
    case LeaseOp::kHandleRenewal:
      return renewal_.has_value() && !renewal_->granted.has_value();
    case LeaseOp::kAnswerRenewal:
      return renewal_.has_value() && renewal_->granted.has_value();
    case LeaseOp::kBeginMapped:
      if (read_.has_value() || !first.stored) return false;
      return !options_.reader_checks ||
             (Usable(0) &&
              LoadPageGeneration(Memory(first.page)) == first.generation);
    case LeaseOp::kEndMapped:
      return read_.has_value();
    case LeaseOp::kBeginFetch:
      return first.page >= 0 && !fetch_.has_value();
    case LeaseOp::kEndFetch:
      return fetch_.has_value();
    case LeaseOp::kOtherOpen:
      return !other.open || oracle_.now >= other.fence;
    case LeaseOp::kOtherReserve:
      return other.open && other.page < 0;
    case LeaseOp::kOtherStore:
    case LeaseOp::kOtherFree:
      return other.page >= 0;
  }
  return false;
}

void LeaseWorld::Do(LeaseOp op) {
  switch (op) {
    case LeaseOp::kTick:
      return Advance(kTick);
    case LeaseOp::kJump:
      return Advance(kJump);
    case LeaseOp::kSweep:
      directory_.Sweep();
      oracle_.Expire();
      return oracle_.Sweep();
    case LeaseOp::kOpen:
      return Open(0);
    case LeaseOp::kReserve:
      return Reserve(0);
    case LeaseOp::kBeginStore:
      store_ = BeginStore(0);
      return;
    case LeaseOp::kFinishStore:
      return FinishStore(*std::exchange(store_, std::nullopt));
    case LeaseOp::kFree:
      return FreePage(0);
    case LeaseOp::kClose:
      return Close();
    case LeaseOp::kSendRenewal:
      renewal_ = Renewal{oracle_.now, worker(0).life, std::nullopt};
      return;
    case LeaseOp::kHandleRenewal:
      return HandleRenewal();
    case LeaseOp::kAnswerRenewal:
      return AnswerRenewal();
    case LeaseOp::kBeginMapped:
      return BeginMapped();
    case LeaseOp::kEndMapped:
      return EndMapped();
    case LeaseOp::kBeginFetch:
      return BeginFetch();
    case LeaseOp::kEndFetch:
      return EndFetch();
    case LeaseOp::kOtherOpen:
      return Open(1);
    case LeaseOp::kOtherReserve:
      return Reserve(1);
    case LeaseOp::kOtherStore:
      if (std::optional<Store> store = BeginStore(1); store.has_value()) {
        FinishStore(*std::move(store));
      }
      return;
    case LeaseOp::kOtherFree:
      return FreePage(1);
  }
}

void LeaseWorld::Advance(int seconds) {
  clock_.Advance(absl::Seconds(seconds));
  oracle_.now += seconds;
}

void LeaseWorld::Forget(Worker& worker) {
  if (worker.page >= 0) worker.before = worker.generation;
  worker.page = -1;
  worker.stored = false;
}

void LeaseWorld::Open(int s) {
  OpenSessionCall call;
  call.session = IdOf(s);
  call.tenant = "tenant";
  call.geometry = kGeometry;
  call.lease = absl::Seconds(kLease[s]);
  const absl::StatusOr<SessionGrant> grant = directory_.Open(call);
  if (!grant.ok()) return Expect(false, "a session was not opened");
  oracle_.Expire();
  const bool resumed = oracle_.at(s).present;
  Expect(grant->resumed == resumed, "resumed is not what it was");
  if (resumed) events_ |= kSessionResumed;
  oracle_.Open(s, kLease[s]);
  Worker& opened = worker(s);
  if (!resumed) {
    Forget(opened);
    opened.number = 0;
  }
  opened.open = true;
  opened.life = oracle_.at(s).life;
  opened.fence = oracle_.now + kLease[s] - kLease[s] / 10;
}

absl::StatusOr<TierPlanResult> LeaseWorld::Plan(int s, bool reserve) {
  TierPlanCall call;
  call.session = IdOf(s);
  call.epoch = kEpoch;
  call.sequence_number = ++worker(s).number;
  (reserve ? call.reserve : call.free).push_back(kPage);
  absl::StatusOr<TierPlanResult> result = directory_.Apply(call);
  oracle_.Expire();
  return result;
}

void LeaseWorld::Reserve(int s) {
  const absl::StatusOr<TierPlanResult> result = Plan(s, true);
  if (!oracle_.at(s).present) {
    events_ |= kPlanRefused;
    return ExpectStatus(result.status(), oracle_.Gone(s),
                        "a late reservation was not refused as it should be");
  }
  oracle_.Sweep();
  if (oracle_.free.empty()) {
    events_ |= kPoolWasFull;
    return ExpectStatus(
        result.status(),
        {absl::StatusCode::kResourceExhausted, ErrorReason::kPoolFull},
        "a page was given away that is not free");
  }
  if (!result.ok()) return Expect(false, "a free page was not given away");
  Adopt(s, result->reserved[0]);
}

void LeaseWorld::Adopt(int s, const PagePlacement& place) {
  const int page = static_cast<int>(place.slab_offset / Stride());
  const OraclePage::State state = oracle_.page(page).state;
  if (state != OraclePage::State::kFree) {
    return Expect(false, "a page was given away that another one holds");
  }
  Expect(!read_.has_value() || read_->page != page || !Usable(0) ||
             read_->life != worker(0).life,
         "a page was given away under a reader whose lease holds");
  Expect(place.generation > last_, "a generation is not above all before");
  if (oracle_.page(page).owner == 1 - s) events_ |= kPageChangedHands;
  last_ = place.generation;
  oracle_.Take(s, page, place.generation);
  worker(s).page = page;
  worker(s).generation = place.generation;
  worker(s).stored = false;
}

void LeaseWorld::FreePage(int s) {
  const absl::StatusOr<TierPlanResult> result = Plan(s, false);
  if (!oracle_.at(s).present) {
    events_ |= kPlanRefused;
    return ExpectStatus(result.status(), oracle_.Gone(s),
                        "a late release was not refused as it should be");
  }
  oracle_.Sweep();
  if (!result.ok()) return Expect(false, "a page could not be freed");
  oracle_.FreePage(s);
  Forget(worker(s));
}

void LeaseWorld::Close() {
  const absl::StatusOr<uint64_t> freed = directory_.Close(IdOf(0), kEpoch);
  oracle_.Expire();
  const bool held = oracle_.at(0).present && oracle_.at(0).page >= 0;
  Expect(freed.ok() && *freed == (held ? 1u : 0u), "close freed other pages");
  if (oracle_.at(0).present) oracle_.Close(0);
  Forget(worker(0));
  worker(0).open = false;
}

}  // namespace farkv

// Random opens, reservations, stores, renewals, closes and passing time on a
// Directory against a trivial model of it. Late stores (a ticket kept while
// the session ends or the page is freed) and retries are part of it. Prints
// the seed; random_run.h says how to replay it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/directory.h"
#include "tests/model/random_run.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr KvGeometry kGeometry{
    .num_layers = 2, .num_kv_heads = 1, .head_dim = 16};
constexpr Epoch kEpoch{5};
constexpr int kSessions = 4;
constexpr int32_t kPageIndexes = 5;
constexpr size_t kPoolPages = 24;
const std::vector<uint64_t> kRows = {~0ull};

SessionId IdOf(int number) {
  SessionId id;
  id.bytes.fill(static_cast<uint8_t>(number + 1));
  return id;
}

struct ModelPage {
  Generation generation;
  uint32_t slab_id = 0;
  uint64_t slab_offset = 0;
  bool stored = false;
};

struct ModelSession {
  uint64_t life = 0;
  absl::Duration lease;
  absl::Time lease_end = absl::InfinitePast();
  uint64_t last_number = 0;
  std::map<PageName, ModelPage> pages;
  std::map<uint64_t, size_t> replies;  // number -> reserved pages
};

// A store that has begun and not finished.
struct LateStore {
  int session = 0;
  uint64_t life = 0;
  PageName page;
  ModelPage place;
  StoreTicket ticket;
};

class DirectoryModel {
 public:
  explicit DirectoryModel(uint64_t seed)
      : random_(seed),
        pool_(PoolOptions(), AllocateHeapSlab, clock_),
        directory_(Options(), pool_, clock_) {}

  void Step() {
    switch (random_.Below(10)) {
      case 0:
        return Open();
      case 1:
      case 2:
      case 3:
        return Plan();
      case 4:
        return BeginStore();
      case 5:
        return FinishStore();
      case 6:
        return Fetch();
      case 7:
        return Renew();
      case 8:
        if (random_.OneIn(4)) return Close();
        return Retry();
      default:
        clock_.Advance(absl::Milliseconds(random_.Below(1500)));
        Expire();
        if (random_.OneIn(2)) directory_.Sweep();
    }
  }

  void Check() {
    Expire();
    size_t reserved = 0, stored = 0;
    for (const auto& [number, session] : sessions_) {
      for (const auto& [name, page] : session.pages) {
        ++(page.stored ? stored : reserved);
      }
    }
    directory_.Sweep();
    const DirectoryStats stats = directory_.stats();
    ASSERT_EQ(stats.sessions, sessions_.size());
    ASSERT_EQ(stats.stored_pages, stored);
    ASSERT_EQ(stats.reserved_pages, reserved);
    size_t quarantined = 0;
    for (const auto& [until, count] : quarantine_) quarantined += count;
    const PagePoolStats pool = pool_.stats();
    ASSERT_EQ(pool.quarantined_pages, quarantined);
    // A page that was given back under a late store counts until it is done.
    ASSERT_GE(pool.used_pages, reserved + stored);
    ASSERT_LE(pool.used_pages, reserved + stored + late_.size());
    ASSERT_EQ(pool.pins, late_.size());
  }

  void Finish() {
    while (!late_.empty()) FinishStore();
    for (int number = 0; number < kSessions; ++number) {
      ASSERT_TRUE(directory_.Close(IdOf(number), kEpoch).ok());
    }
    clock_.Advance(absl::Hours(1));
    ASSERT_EQ(directory_.Sweep().next, absl::InfiniteFuture());
    const PagePoolStats pool = pool_.stats();
    ASSERT_EQ(pool.used_pages + pool.quarantined_pages + pool.pins, 0u);
  }

 private:
  static PagePoolOptions PoolOptions() {
    PagePoolOptions options;
    options.slab_bytes = kPoolPages / 2 * PageLayout::T1(kGeometry).stride;
    options.capacity_bytes = 2 * options.slab_bytes;
    options.high_watermark = 10000;
    return options;
  }
  static DirectoryOptions Options() {
    DirectoryOptions options;
    options.epoch = kEpoch;
    options.max_lease = absl::Seconds(3);
    return options;
  }
  DataCaller Caller(int number) const {
    return {IdOf(number), kEpoch, "tenant"};
  }
  ModelSession* Find(int number) {
    const auto found = sessions_.find(number);
    return found == sessions_.end() ? nullptr : &found->second;
  }
  int AnySession() { return static_cast<int>(random_.Below(kSessions)); }
  PageName AnyPage() {
    return {static_cast<int32_t>(random_.Below(2)),
            static_cast<int32_t>(random_.Below(kPageIndexes))};
  }

  // What time alone does: leases end, quarantines end.
  void Expire() {
    const absl::Time now = clock_.Now();
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      if (it->second.lease_end > now) {
        ++it;
        continue;
      }
      const absl::Time until = it->second.lease_end + it->second.lease;
      if (!it->second.pages.empty() && until > now) {
        quarantine_.emplace(until, it->second.pages.size());
      }
      it = sessions_.erase(it);
    }
    quarantine_.erase(quarantine_.begin(), quarantine_.upper_bound(now));
  }

  void Open() {
    const int number = AnySession();
    OpenSessionCall call;
    call.session = IdOf(number);
    call.tenant = "tenant";
    call.geometry = kGeometry;
    call.lease = absl::Milliseconds(500 + random_.Below(4000));
    Expire();
    const auto grant = directory_.Open(call);
    ASSERT_TRUE(grant.ok()) << grant.status();
    const absl::Duration lease = std::min(call.lease, absl::Seconds(3));
    ASSERT_EQ(grant->lease, lease);
    ModelSession& session = sessions_[number];
    if (session.life == 0) session.life = next_life_++;
    Extend(session, lease);
  }

  void Renew() {
    const int number = AnySession();
    const absl::Duration lease = absl::Milliseconds(500 + random_.Below(4000));
    Expire();
    const auto result =
        directory_.Renew(kEpoch, std::vector{IdOf(number)}, lease);
    ASSERT_TRUE(result.ok());
    ModelSession* session = Find(number);
    ASSERT_EQ(result->renewals[0].status.ok(), session != nullptr);
    if (session == nullptr) return;
    Extend(*session, std::min(lease, absl::Seconds(3)));
  }

  // The end of a lease only moves forward.
  void Extend(ModelSession& session, absl::Duration lease) {
    if (clock_.Now() + lease < session.lease_end) return;
    session.lease = lease;
    session.lease_end = clock_.Now() + lease;
  }

  void Close() {
    const int number = AnySession();
    Expire();
    const auto freed = directory_.Close(IdOf(number), kEpoch);
    ASSERT_TRUE(freed.ok());
    const ModelSession* session = Find(number);
    ASSERT_EQ(*freed, session == nullptr ? 0 : session->pages.size());
    sessions_.erase(number);
  }

  void Plan() {
    int number = AnySession();
    TierPlanCall call;
    std::set<PageName> reserve;
    if (!late_.empty() && random_.OneIn(3)) {
      // Pull the page away from under a store, or give its name another one.
      const LateStore& late = late_[random_.Below(late_.size())];
      number = late.session;
      if (random_.OneIn(2)) {
        call.free.push_back(late.page);
      } else {
        reserve.insert(late.page);
      }
    }
    call.session = IdOf(number);
    call.epoch = kEpoch;
    for (uint64_t n = random_.Below(6); n > 0; --n) reserve.insert(AnyPage());
    call.reserve.assign(reserve.begin(), reserve.end());
    for (uint64_t n = random_.Below(3); n > 0; --n) {
      call.free.push_back(AnyPage());
    }
    Expire();
    ModelSession* session = Find(number);
    call.sequence_number =
        session == nullptr ? 1 : session->last_number + 1 + random_.Below(2);
    const auto result = directory_.Apply(call);
    if (session == nullptr) {
      ASSERT_FALSE(result.ok());
      return;
    }
    ApplyToModel(*session, call, result);
  }

  void ApplyToModel(ModelSession& session, const TierPlanCall& call,
                    const absl::StatusOr<TierPlanResult>& result) {
    size_t taken = pool_.stats().quarantined_pages, missing = 0;
    for (const auto& [number, other] : sessions_) taken += other.pages.size();
    for (const PageName& page : call.reserve) {
      if (!session.pages.contains(page)) ++missing;
    }
    if (!result.ok()) {
      ASSERT_EQ(ReasonOf(result.status()), ErrorReason::kPoolFull);
      ASSERT_GT(taken + missing + late_.size(), kPoolPages);
      return;
    }
    ASSERT_LE(taken + missing, kPoolPages);
    ASSERT_EQ(result->reserved.size(), call.reserve.size());
    for (const PagePlacement& placement : result->reserved) {
      const ModelPage page{placement.generation, placement.slab_id,
                           placement.slab_offset, false};
      const auto [held, added] = session.pages.emplace(placement.page, page);
      ASSERT_EQ(held->second.slab_offset, placement.slab_offset);
      ASSERT_EQ(held->second.generation, placement.generation);
      if (added) CheckUnique(page);
    }
    size_t freed = 0;
    for (const PageName& page : call.free) freed += session.pages.erase(page);
    ASSERT_EQ(result->freed_pages, freed);
    session.last_number = call.sequence_number;
    session.replies[call.sequence_number] = result->reserved.size();
  }

  // No two pages, of whatever session or late store, share memory.
  void CheckUnique(const ModelPage& page) {
    size_t same = 0;
    const auto is_same = [&page](const ModelPage& other) {
      return other.slab_id == page.slab_id &&
             other.slab_offset == page.slab_offset;
    };
    for (const auto& [number, session] : sessions_) {
      for (const auto& [name, held] : session.pages) same += is_same(held);
    }
    ASSERT_EQ(same, 1u);
    for (const LateStore& late : late_) {
      ASSERT_FALSE(is_same(late.place)) << "memory reused under a store";
    }
  }

  void Retry() {
    const int number = AnySession();
    Expire();
    ModelSession* session = Find(number);
    if (session == nullptr || session->last_number == 0) return;
    TierPlanCall call;
    call.session = IdOf(number);
    call.epoch = kEpoch;
    call.sequence_number = 1 + random_.Below(session->last_number);
    const auto result = directory_.Apply(call);
    auto oldest_kept = session->replies.end();
    for (size_t i = 0;
         i < ReplyLog::kKept && oldest_kept != session->replies.begin(); ++i) {
      --oldest_kept;
    }
    const auto reply = session->replies.find(call.sequence_number);
    const bool kept =
        reply != session->replies.end() && reply->first >= oldest_kept->first;
    ASSERT_EQ(result.ok(), kept);
    if (!kept) {
      ASSERT_EQ(ReasonOf(result.status()), ErrorReason::kStaleSequenceNumber);
      return;
    }
    ASSERT_EQ(result->reserved.size(), reply->second);
  }

  void BeginStore() {
    const int number = AnySession();
    const PageName name = AnyPage();
    Expire();
    ModelSession* session = Find(number);
    const ModelPage* page = nullptr;
    if (session != nullptr && session->pages.contains(name)) {
      page = &session->pages.at(name);
    }
    const Generation generation =
        page == nullptr ? Generation{1} : page->generation;
    const bool running =
        std::any_of(late_.begin(), late_.end(), [&](const LateStore& late) {
          return page != nullptr && late.life == session->life &&
                 late.page == name &&
                 late.place.slab_offset == page->slab_offset &&
                 late.place.slab_id == page->slab_id;
        });
    auto ticket = directory_.BeginStore(Caller(number), name, generation);
    ASSERT_EQ(ticket.ok(), page != nullptr && !running) << ticket.status();
    if (!ticket.ok()) return;
    ASSERT_EQ(ticket->was_stored, page->stored);
    ASSERT_EQ(LoadPageGeneration(ticket->pin.data()), generation);
    late_.push_back({number, session->life, name, *page, *std::move(ticket)});
  }

  void FinishStore() {
    if (late_.empty()) return;
    const size_t index = random_.Below(late_.size());
    LateStore late = std::move(late_[index]);
    late_.erase(late_.begin() + static_cast<ptrdiff_t>(index));
    // Nobody else may have written into the page meanwhile.
    ASSERT_EQ(LoadPageGeneration(late.ticket.pin.data()),
              late.place.generation);
    Expire();
    ModelSession* session = Find(late.session);
    ModelPage* page = nullptr;
    if (session != nullptr && session->life == late.life &&
        session->pages.contains(late.page)) {
      page = &session->pages.at(late.page);
      if (page->slab_id != late.place.slab_id ||
          page->slab_offset != late.place.slab_offset ||
          page->generation != late.place.generation) {
        page = nullptr;
      }
    }
    const bool copied = !random_.OneIn(4);
    directory_.Sweep();
    const absl::Status status = directory_.FinishStore(
        std::move(late.ticket), copied ? kRows : std::vector<uint64_t>());
    ASSERT_EQ(status.ok(), page != nullptr) << status;
    if (page != nullptr && copied) page->stored = true;
  }

  void Fetch() {
    const int number = AnySession();
    const PageName name = AnyPage();
    Expire();
    ModelSession* session = Find(number);
    bool readable = false;
    Generation generation{1};
    if (session != nullptr && session->pages.contains(name)) {
      readable = session->pages.at(name).stored;
      generation = session->pages.at(name).generation;
      if (random_.OneIn(4)) {
        ++generation.value;
        readable = false;
      }
    }
    const PageWanted wanted{name.page_index, generation, kRows};
    const auto pins =
        directory_.BeginFetch(Caller(number), name.layer, {&wanted, 1});
    ASSERT_EQ(pins[0].ok(), readable) << pins[0].status();
  }

  RandomRun random_;
  ManualClock clock_;
  PagePool pool_;
  Directory directory_;
  uint64_t next_life_ = 1;
  std::map<int, ModelSession> sessions_;
  std::multimap<absl::Time, size_t> quarantine_;  // end -> pages
  std::vector<LateStore> late_;
};

void RunModel(uint64_t seed, int steps) {
  SCOPED_TRACE(testing::Message() << "FARKV_TEST_SEED=" << seed);
  DirectoryModel model(seed);
  for (int step = 0; step < steps; ++step) {
    model.Step();
    if (::testing::Test::HasFatalFailure()) return;
    model.Check();
    if (::testing::Test::HasFatalFailure()) return;
  }
  model.Finish();
}

TEST(DirectoryModelTest, RandomOperationsAgreeWithTheModel) {
  for (uint64_t seed : ModelSeeds()) {
    RunModel(seed, 4000);
    if (HasFatalFailure()) return;
  }
}

// In a young pool pages share generations, so a name and a generation do not
// tell two of them apart.
TEST(DirectoryModelTest, YoungPoolsAgreeToo) {
  for (uint64_t first : ModelSeeds()) {
    for (uint64_t run = 0; run < 200; ++run) {
      RunModel(first + 1000 * run, 100);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace farkv

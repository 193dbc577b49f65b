// Random opens, reservations, stores, compressions, evictions, renewals, closes
// and passing time on a Directory against a trivial model of it. Late stores (a
// ticket kept while the session ends or the page is freed) and retries are part
// of it. Prints the seed; random_run.h says how to replay it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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
constexpr size_t kT2Pages = 6;
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
  int t2_bits = 0;  // 0: T1
  uint64_t live = 0;
  // T1: what was stored; T2: what lived when the page was made.
  uint64_t readable = 0;
  // Of a T2 page: the T1 page that it was made from, in quarantine.
  Generation previous{};
  absl::Time until = absl::InfinitePast();
  uint64_t previous_readable = 0;
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
        t2_pool_(T2Options(), AllocateHeapSlab, clock_, &pool_),
        directory_(Options(), pool_, clock_,
                   {&t2_pool_, [this](const KvGeometry& geometry, int,
                                      std::span<const uint64_t>,
                                      std::byte* from, std::byte* to) {
                      return Compress(geometry, from, to);
                    }}) {}

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
    size_t reserved = 0, stored = 0, t2 = 0, live = 0, t2_live = 0;
    for (const auto& [number, session] : sessions_) {
      for (const auto& [name, page] : session.pages) {
        ++(page.stored ? stored : reserved);
        const auto rows = static_cast<size_t>(std::popcount(page.live));
        live += rows;
        if (page.t2_bits == 0) continue;
        ++t2;
        t2_live += rows;
      }
    }
    directory_.Sweep();
    const DirectoryStats stats = directory_.stats();
    ASSERT_EQ(stats.sessions, sessions_.size());
    ASSERT_EQ(stats.stored_pages, stored);
    ASSERT_EQ(stats.reserved_pages, reserved);
    ASSERT_EQ(stats.t2_pages, t2);
    ASSERT_EQ(stats.live_rows, live);
    ASSERT_EQ(stats.t2_live_rows, t2_live);
    const PagePoolStats pool = pool_.stats();
    ASSERT_EQ(pool.quarantined_pages, Quarantined(quarantine_));
    // A page that was given back under a late store counts until it is done.
    const size_t t1 = reserved + stored - t2;
    ASSERT_GE(pool.used_pages, t1);
    ASSERT_LE(pool.used_pages, t1 + late_.size());
    ASSERT_EQ(pool.pins, late_.size());
    const PagePoolStats t2_pool = t2_pool_.stats();
    ASSERT_EQ(t2_pool.used_pages, t2);
    ASSERT_EQ(t2_pool.quarantined_pages, Quarantined(t2_quarantine_));
    ASSERT_EQ(t2_pool.pins, 0u);
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
    const PagePoolStats t2 = t2_pool_.stats();
    ASSERT_EQ(t2.used_pages + t2.quarantined_pages + t2.pins, 0u);
  }

 private:
  using Quarantine = std::multimap<absl::Time, size_t>;  // end -> pages

  static size_t Quarantined(const Quarantine& quarantine) {
    size_t pages = 0;
    for (const auto& [until, count] : quarantine) pages += count;
    return pages;
  }
  static PagePoolOptions T2Options() {
    PagePoolOptions options;
    // Both kinds of T2 pages of this geometry have the same stride.
    options.slab_bytes = kT2Pages / 2 * PageLayout::T2(kGeometry, 8).stride;
    options.capacity_bytes = 2 * options.slab_bytes;
    options.high_watermark = 10000;
    return options;
  }
  // Some pages cannot be compressed.
  absl::Status Compress(const KvGeometry& geometry, std::byte* from,
                        std::byte* to) {
    if (refuse_to_compress_) return absl::OutOfRangeError("as the test wants");
    PageHeader(to, geometry).set_live(0, PageHeader(from, geometry).live(0));
    PageHeader(to, geometry).Seal();
    return absl::OkStatus();
  }
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
      for (const auto& [name, page] : it->second.pages) {
        (page.t2_bits == 0 ? quarantine_ : t2_quarantine_).emplace(until, 1);
      }
      it = sessions_.erase(it);
    }
    for (Quarantine* quarantine : {&quarantine_, &t2_quarantine_}) {
      quarantine->erase(quarantine->begin(), quarantine->upper_bound(now));
    }
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
    if (session == nullptr) return;
    for (const auto& [name, page] : session->pages) EndQuarantine(page);
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
    for (uint64_t n = random_.Below(3); n > 0; --n) {
      call.tier_changes.push_back(
          {AnyPage(), Tier::kT2, random_.OneIn(4) ? 4 : 8, {}});
    }
    refuse_to_compress_ = random_.OneIn(5);
    Expire();
    ModelSession* session = Find(number);
    for (uint64_t n = random_.Below(3); n > 0; --n) {
      const PageName page = AnyPage();
      call.evictions.push_back({page, {AnyRowsLeft(session, page)}});
    }
    call.sequence_number =
        session == nullptr ? 1 : session->last_number + 1 + random_.Below(2);
    const auto result = directory_.Apply(call);
    if (session == nullptr) {
      ASSERT_FALSE(result.ok());
      return;
    }
    ApplyToModel(*session, call, result);
  }

  // Most often some of those that live, sometimes none, sometimes others too.
  uint64_t AnyRowsLeft(const ModelSession* session, const PageName& name) {
    if (random_.OneIn(8)) return ~uint64_t{0};
    if (random_.OneIn(4) || session == nullptr) return 0;
    const auto page = session->pages.find(name);
    const uint64_t live = page == session->pages.end() ? 1 : page->second.live;
    return live & ((random_.Below(uint64_t{1} << 32) << 32) |
                   random_.Below(uint64_t{1} << 32));
  }

  void EvictInModel(ModelSession& session, const TierPlanCall& call,
                    const TierPlanResult& result, size_t& freed) {
    ASSERT_EQ(result.evictions.size(), call.evictions.size());
    for (size_t i = 0; i < call.evictions.size(); ++i) {
      const PageEviction& eviction = call.evictions[i];
      const auto page = session.pages.find(eviction.page);
      absl::StatusCode expected = absl::StatusCode::kOk;
      if (page == session.pages.end() || !page->second.stored) {
        expected = absl::StatusCode::kNotFound;
      } else if ((eviction.live[0] & ~page->second.live) != 0) {
        expected = absl::StatusCode::kInvalidArgument;
      }
      ASSERT_EQ(result.evictions[i].code(), expected) << result.evictions[i];
      if (expected != absl::StatusCode::kOk) continue;
      page->second.live = eviction.live[0];
      if (page->second.live != 0) continue;
      EndQuarantine(page->second);
      session.pages.erase(page);
      ++freed;
    }
  }

  void ApplyToModel(ModelSession& session, const TierPlanCall& call,
                    const absl::StatusOr<TierPlanResult>& result) {
    size_t taken = Quarantined(quarantine_), missing = 0;
    for (const auto& [number, other] : sessions_) {
      for (const auto& [name, page] : other.pages) taken += page.t2_bits == 0;
    }
    for (const PageName& page : call.reserve) {
      if (!session.pages.contains(page)) ++missing;
    }
    if (!result.ok()) {
      ASSERT_EQ(ReasonOf(result.status()), ErrorReason::kPoolFull);
      ASSERT_GT(taken + missing + late_.size(), kPoolPages);
      return;
    }
    ASSERT_LE(taken + missing, kPoolPages);
    ApplyTierChanges(session, call, *result);
    ASSERT_EQ(result->reserved.size(), call.reserve.size());
    for (const PagePlacement& placement : result->reserved) {
      ModelPage page;
      page.generation = placement.generation;
      page.slab_id = placement.slab_id;
      page.slab_offset = placement.slab_offset;
      const auto [held, added] = session.pages.emplace(placement.page, page);
      ASSERT_EQ(held->second.slab_offset, placement.slab_offset);
      ASSERT_EQ(held->second.generation, placement.generation);
      if (added) CheckUnique(page);
    }
    size_t freed = 0;
    EvictInModel(session, call, *result, freed);
    for (const PageName& name : call.free) {
      const auto page = session.pages.find(name);
      if (page == session.pages.end()) continue;
      EndQuarantine(page->second);
      session.pages.erase(page);
      ++freed;
    }
    ASSERT_EQ(result->freed_pages, freed);
    session.last_number = call.sequence_number;
    session.replies[call.sequence_number] = result->reserved.size();
  }

  // The owner gave the page back: nobody reads what it was made from.
  void EndQuarantine(const ModelPage& page) {
    if (page.until > clock_.Now())
      quarantine_.erase(quarantine_.find(page.until));
  }

  bool StoreRuns(const ModelSession& session, const PageName& name,
                 const ModelPage& page) const {
    return std::any_of(late_.begin(), late_.end(), [&](const LateStore& late) {
      return late.life == session.life && late.page == name &&
             late.place.slab_offset == page.slab_offset &&
             late.place.slab_id == page.slab_id;
    });
  }

  void ApplyTierChanges(ModelSession& session, const TierPlanCall& call,
                        const TierPlanResult& result) {
    ASSERT_EQ(result.moved.size(), call.tier_changes.size());
    const std::map<PageName, ModelPage> before = session.pages;
    std::set<PageName> changing;
    for (size_t i = 0; i < result.moved.size(); ++i) {
      const TierChange& change = call.tier_changes[i];
      const PagePlacement& moved = result.moved[i];
      ASSERT_EQ(moved.page, change.page);
      const auto found = before.find(change.page);
      absl::StatusCode expected = absl::StatusCode::kOk;
      if (found == before.end() || !found->second.stored) {
        expected = absl::StatusCode::kNotFound;
      } else if (found->second.t2_bits != 0) {
        if (found->second.t2_bits == change.t2_bits) {
          ASSERT_EQ(moved.generation, found->second.generation);
          continue;
        }
        expected = absl::StatusCode::kFailedPrecondition;
      } else if (changing.contains(change.page)) {
        expected = absl::StatusCode::kInvalidArgument;
      } else if (StoreRuns(session, change.page, found->second)) {
        expected = absl::StatusCode::kAborted;
      } else {
        changing.insert(change.page);
        if (T2Taken() == kT2Pages) {
          expected = absl::StatusCode::kResourceExhausted;
        } else if (refuse_to_compress_) {
          expected = absl::StatusCode::kOutOfRange;
        }
      }
      ASSERT_EQ(moved.status.code(), expected) << moved.status;
      if (moved.status.ok()) Move(session, change, moved);
    }
  }

  size_t T2Taken() const {
    size_t taken = Quarantined(t2_quarantine_);
    for (const auto& [number, session] : sessions_) {
      for (const auto& [name, page] : session.pages) taken += page.t2_bits != 0;
    }
    return taken;
  }

  void Move(ModelSession& session, const TierChange& change,
            const PagePlacement& moved) {
    ModelPage& page = session.pages.at(change.page);
    ASSERT_GT(moved.generation, page.generation);
    page.previous = page.generation;
    page.until = clock_.Now() + session.lease;
    page.previous_readable = page.readable;
    page.readable = page.live;
    quarantine_.emplace(page.until, 1);
    page.generation = moved.generation;
    page.slab_id = moved.slab_id;
    page.slab_offset = moved.slab_offset;
    page.t2_bits = change.t2_bits;
    CheckUnique(page);
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
    const bool expected = page != nullptr && page->t2_bits == 0 &&
                          !StoreRuns(*session, name, *page);
    auto ticket = directory_.BeginStore(Caller(number), name, generation);
    ASSERT_EQ(ticket.ok(), expected) << ticket.status();
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
    // A repeat writes rows that are there, and brings none back.
    if (copied && !late.ticket.was_stored) {
      PageHeader(late.ticket.pin.data(), kGeometry).set_live(0, kRows[0]);
    }
    directory_.Sweep();
    const absl::Status status = directory_.FinishStore(
        std::move(late.ticket), copied ? kRows : std::vector<uint64_t>());
    ASSERT_EQ(status.ok(), page != nullptr) << status;
    if (page == nullptr || !copied || page->stored) return;
    page->stored = true;
    page->live = page->readable = kRows[0];
  }

  void Fetch() {
    const int number = AnySession();
    const PageName name = AnyPage();
    Expire();
    ModelSession* session = Find(number);
    bool readable = false;
    std::vector<uint64_t> rows = kRows;
    PageWanted wanted{name.page_index, Generation{1}, rows};
    if (session != nullptr && session->pages.contains(name)) {
      const ModelPage& page = session->pages.at(name);
      uint64_t there = page.readable;
      readable = page.stored;
      wanted.generation = page.generation;
      wanted.tier = page.t2_bits == 0 ? Tier::kT1 : Tier::kT2;
      wanted.t2_bits = page.t2_bits;
      if (page.t2_bits != 0 && random_.OneIn(2)) {
        readable = page.until > clock_.Now();
        wanted.generation = page.previous;
        wanted.tier = Tier::kT1;
        wanted.t2_bits = 0;
        there = page.previous_readable;
      }
      if (random_.OneIn(2)) rows[0] = there;
      readable = readable && (rows[0] & ~there) == 0;
      if (random_.OneIn(4)) {
        // Generations are above 0, and no page is T2 of 2 bits.
        if (random_.OneIn(2)) wanted.generation.value = 0;
        if (wanted.generation.value != 0) wanted.t2_bits = 2;
        readable = false;
      }
    }
    const auto pins =
        directory_.BeginFetch(Caller(number), name.layer, {&wanted, 1});
    ASSERT_EQ(pins[0].ok(), readable) << pins[0].status();
    if (!readable) return;
    ASSERT_EQ(LoadPageGeneration(pins[0]->data()), wanted.generation);
  }

  RandomRun random_;
  ManualClock clock_;
  PagePool pool_;
  PagePool t2_pool_;
  bool refuse_to_compress_ = false;
  Directory directory_;
  uint64_t next_life_ = 1;
  std::map<int, ModelSession> sessions_;
  Quarantine quarantine_, t2_quarantine_;
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

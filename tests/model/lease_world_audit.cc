// What is compared after each operation, and which states are the same.
#include <algorithm>

#include "tests/model/lease_world.h"

namespace farkv {

void LeaseWorld::ExpectStatus(const absl::Status& status,
                              const Verdict& verdict, const char* what) {
  if (!failure_.empty()) return;
  if (status.code() == verdict.code &&
      (status.ok() || ReasonOf(status) == verdict.reason)) {
    return;
  }
  failure_ = absl::StrCat(what, ": ", status.ToString(), ", not ",
                          absl::StatusCodeToString(verdict.code), " of reason ",
                          static_cast<int>(verdict.reason));
}

void LeaseWorld::Audit() {
  for (int s = 0; s < 2; ++s) {
    const Generation own = worker(s).generation;
    const Generation before = worker(s).before;
    const Generation others = worker(1 - s).generation;
    AuditAccess(s, own);
    if (before != own) AuditAccess(s, before);
    if (others != own && others != before) AuditAccess(s, others);
    AuditFence(s);
  }
  AuditMemory();
  AuditCounts();
}

// A store that comes now, however old, and a fetch; both are undone at once.
void LeaseWorld::AuditAccess(int s, Generation generation) {
  const uint64_t rows[] = {~uint64_t{0}};
  PageWanted wanted;
  wanted.page_index = kPage.page_index;
  wanted.generation = generation;
  wanted.rows = rows;
  const Verdict fetch = oracle_.Access(s, generation, false);
  const auto pins =
      directory_.BeginFetch(CallerOf(s), kPage.layer, {&wanted, 1});
  ExpectStatus(pins[0].status(), fetch,
               "a fetch was not answered as it should");
  if (fetch.ok() && pins[0].ok()) {
    Expect(pins[0]->data() == Memory(oracle_.at(s).page) &&
               HoldsWords(pins[0]->data(), Word(s, generation)),
           "a session's page holds other rows");
  }
  const Verdict store = oracle_.Access(s, generation, true);
  auto ticket = directory_.BeginStore(CallerOf(s), kPage, generation);
  ExpectStatus(ticket.status(), store, "a store was not answered as it should");
  if (!ticket.ok()) return;
  Expect(directory_.FinishStore(*std::move(ticket), {}).ok(),
         "a store of nothing failed");
}

// A lease that the node has ended is over for its worker.
void LeaseWorld::AuditFence(int s) {
  const Worker& believing = worker(s);
  if (!believing.open) return;
  const OracleSession& session = oracle_.at(s);
  const bool runs = session.present && session.life == believing.life;
  Expect(believing.fence <= (runs ? session.end : oracle_.now),
         "a worker's notion of its lease outlives the node's");
}

void LeaseWorld::AuditMemory() {
  for (int p = 0; p < options_.num_pages; ++p) {
    const OraclePage& page = oracle_.page(p);
    if (page.state == OraclePage::State::kFree) continue;
    Expect(LoadPageGeneration(Memory(p)) == page.generation,
           "a page that is not free changed its generation");
  }
}

void LeaseWorld::AuditCounts() {
  size_t sessions = 0, stored = 0, reserved = 0;
  for (const OracleSession& session : oracle_.sessions) {
    sessions += session.present;
    if (!session.present || session.page < 0) continue;
    ++(session.stored ? stored : reserved);
  }
  const DirectoryStats directory = directory_.stats();
  Expect(directory.sessions == sessions, "sessions that are not open");
  Expect(directory.stored_pages == stored, "stored pages do not add up");
  Expect(directory.reserved_pages == reserved, "reserved pages do not add up");

  size_t pins = 0;
  for (const OraclePage& page : oracle_.pages) {
    pins += static_cast<size_t>(page.pins);
  }
  const PagePoolStats pool = pool_.stats();
  Expect(pool.pins == pins, "pins do not add up");
  Expect(pool.quarantined_pages == oracle_.quarantine.size(),
         "pages in quarantine do not add up");
  if (pool.slabs == 0) return;  // before the first reservation
  Expect(pool.free_pages == oracle_.free.size(), "free pages do not add up");
  Expect(pool.used_pages + pool.quarantined_pages + pool.free_pages ==
             oracle_.pages.size(),
         "used, quarantined and free pages are not all");
}

namespace {

// Numbers one after the other, each in a byte; what lies further back than any
// lease and its quarantine is the same.
class KeyWriter {
 public:
  void Add(int value) {
    key_.push_back(static_cast<char>(std::clamp(value, -100, 100)));
  }
  std::string Take() { return std::move(key_); }

 private:
  std::string key_;
};

}  // namespace

// Times count from now, generations by whether they are their page's last.
std::string LeaseWorld::Key() const {
  KeyWriter key;
  const int now = oracle_.now;
  for (int s = 0; s < 2; ++s) {
    const OracleSession& session = oracle_.at(s);
    key.Add(session.present + 2 * session.stored + 4 * session.storing +
            8 * session.ever_expired);
    key.Add(session.present ? session.end - now : 0);
    key.Add(session.present ? session.lease : 0);
    key.Add(session.present ? session.page : -1);
    const Worker& worker = this->worker(s);
    key.Add(worker.open + 2 * worker.stored +
            4 * (worker.life == session.life));
    key.Add(worker.open ? std::max(worker.fence - now, 0) : 0);
    key.Add(worker.page);
    key.Add(worker.page >= 0 &&
            oracle_.page(worker.page).generation == worker.generation);
  }
  for (const OraclePage& page : oracle_.pages) {
    key.Add(static_cast<int>(page.state) + 4 * page.owner);
    key.Add(page.pins);
  }
  for (int page : oracle_.free) key.Add(page);
  for (const auto& [until, page] : oracle_.quarantine) {
    key.Add(std::max(until - now, 0));
    key.Add(page);
  }
  const int life = worker(0).life;
  if (store_) {
    key.Add(1 + 2 * (store_->life == life) +
            4 * (oracle_.page(store_->page).generation == store_->generation) +
            8 * store_->ticket.was_stored);
    key.Add(store_->page);
  }
  if (renewal_) {
    key.Add(renewal_->granted.has_value() ? 20 + *renewal_->granted : 22);
    key.Add(now - renewal_->sent);
    key.Add(renewal_->life == life);
  }
  if (read_) {
    key.Add(30 + (read_->life == life) +
            2 * (oracle_.page(read_->page).generation == read_->generation));
    key.Add(read_->page);
  }
  if (fetch_) {
    key.Add(40 + (fetch_->life == life));
    key.Add(fetch_->page);
  }
  return key.Take();
}

void LeaseWorld::Finish() {
  store_.reset();
  fetch_.reset();
  clock_.Advance(absl::Hours(2));
  const absl::Time next = directory_.Sweep().next;
  const PagePoolStats pool = pool_.stats();
  Expect(next == absl::InfiniteFuture() && pool.pins == 0 &&
             pool.used_pages + pool.quarantined_pages == 0,
         "not every page was free in the end");
}

}  // namespace farkv

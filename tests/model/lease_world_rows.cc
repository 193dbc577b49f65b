// Stores, renewals and reads: what takes time, so that others come between.
#include <atomic>
#include <utility>

#include "tests/model/lease_world.h"

namespace farkv {

std::optional<LeaseWorld::Store> LeaseWorld::BeginStore(int s) {
  const Worker& storing = worker(s);
  const Verdict verdict = oracle_.Access(s, storing.generation, true);
  absl::StatusOr<StoreTicket> ticket =
      directory_.BeginStore(CallerOf(s), kPage, storing.generation);
  ExpectStatus(ticket.status(), verdict,
               "a store did not begin as it should have");
  if (!verdict.ok()) events_ |= kLateStoreRefused;
  if (!verdict.ok() || !ticket.ok()) return std::nullopt;
  Expect(ticket->was_stored == oracle_.at(s).stored, "was_stored is wrong");
  oracle_.at(s).storing = true;
  oracle_.Pin(oracle_.at(s).page);
  return Store{s, *std::move(ticket), oracle_.at(s).life, oracle_.at(s).page,
               storing.generation};
}

// Copies as late as it can.
void LeaseWorld::FinishStore(Store store) {
  const int s = store.session;
  std::byte* page = store.ticket.pin.data();
  Expect(LoadPageGeneration(page) == store.generation,
         "a page was reused under the pin of a store");
  const uint64_t word = Word(s, store.generation);
  std::memcpy(WordAt(page, false), &word, sizeof(word));
  std::memcpy(WordAt(page, true), &word, sizeof(word));
  if (!store.ticket.was_stored) PageHeader(page, kGeometry).set_live(0, ~0ull);
  const Verdict verdict = oracle_.Finish(s, store.life, store.generation);
  const uint64_t rows[] = {~uint64_t{0}};
  const absl::Status status =
      directory_.FinishStore(std::move(store.ticket), rows);
  ExpectStatus(status, verdict, "a store did not end as it should have");
  oracle_.Unpin(store.page);
  if (!verdict.ok()) {
    events_ |= kStoreLostItsPage;
    return;
  }
  oracle_.at(s).storing = false;
  oracle_.at(s).stored = true;
  Worker& storing = worker(s);
  if (storing.page >= 0 && storing.generation == store.generation) {
    storing.stored = true;
  }
}

void LeaseWorld::HandleRenewal() {
  const SessionId id = IdOf(0);
  const absl::StatusOr<RenewResult> result =
      directory_.Renew(kEpoch, {&id, 1}, absl::Seconds(kRenewedLease));
  oracle_.Expire();
  if (!result.ok()) return Expect(false, "renewals failed altogether");
  const OracleSession& session = oracle_.at(0);
  renewal_->granted = session.present;
  ExpectStatus(result->renewals[0].status,
               session.present ? Verdict() : oracle_.Gone(0),
               "a renewal did not end as it should have");
  if (session.present) {
    oracle_.Extend(0, kRenewedLease);
  } else {
    events_ |= kRenewalRefused;
  }
}

// The lease counts from when the renewal was sent, however late its answer is.
void LeaseWorld::AnswerRenewal() {
  const Renewal renewal = *std::exchange(renewal_, std::nullopt);
  Worker& renewing = worker(0);
  if (!renewing.open || renewal.life != renewing.life) return;
  if (!*renewal.granted) {
    renewing.open = false;
    return;
  }
  const int from =
      options_.lease_counts_from_sending ? renewal.sent : oracle_.now;
  renewing.fence = from + kRenewedLease - kRenewedLease / 10;
  if (renewing.fence <= oracle_.now) events_ |= kLateAnswer;
}

void LeaseWorld::BeginMapped() {
  const Worker& reading = worker(0);
  read_ = MappedRead{reading.life, reading.page, reading.generation,
                     Load(WordAt(Memory(reading.page), false))};
}

// Each of the two checks is enough: a lease that holds keeps the page, and who
// gets the page changes its generation before its rows.
void LeaseWorld::EndMapped() {
  const MappedRead read = *std::exchange(read_, std::nullopt);
  const uint64_t last_word = Load(WordAt(Memory(read.page), true));
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool lease_holds = Usable(0) && worker(0).life == read.life;
  const bool same = LoadPageGeneration(Memory(read.page)) == read.generation;
  const uint64_t word = Word(0, read.generation);
  const bool right = read.first_word == word && last_word == word;
  Expect(!same || right, "other rows were read under the same generation");
  Expect(!lease_holds || right, "other rows were read under a lease");
  Expect(!lease_holds || same, "a page changed under a lease");
  Expect(options_.reader_checks || right, "a read without checks was wrong");
  events_ |= lease_holds && same ? kReadWasGood : kReadWasDiscarded;
}

void LeaseWorld::BeginFetch() {
  const Generation generation = worker(0).generation;
  const Verdict verdict = oracle_.Access(0, generation, false);
  const uint64_t rows[] = {~uint64_t{0}};
  PageWanted wanted;
  wanted.page_index = kPage.page_index;
  wanted.generation = generation;
  wanted.rows = rows;
  auto pins = directory_.BeginFetch(CallerOf(0), kPage.layer, {&wanted, 1});
  ExpectStatus(pins[0].status(), verdict,
               "a fetch did not begin as it should have");
  if (!verdict.ok() || !pins[0].ok()) return;
  fetch_ = Fetch{*std::move(pins[0]), oracle_.at(0).life, oracle_.at(0).page,
                 generation};
  oracle_.Pin(fetch_->page);
}

void LeaseWorld::EndFetch() {
  const int page = fetch_->page;
  Expect(HoldsWords(fetch_->pin.data(), Word(0, fetch_->generation)),
         "other rows were fetched");
  const OracleSession& session = oracle_.at(0);
  if (!session.present || session.life != fetch_->life || session.page < 0) {
    events_ |= kFetchOutlivedItsPage;
  }
  fetch_.reset();
  oracle_.Unpin(page);
}

}  // namespace farkv

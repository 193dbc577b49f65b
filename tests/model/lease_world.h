// A tiny world around the real directory and pool: two workers with one session
// and one page name each, a pool of one or two pages, a clock that moves in
// ticks. Every operation is held to lease_oracle.h; the first difference stays
// in failure(). The first worker does everything in parts, so that any other
// operation can fall between them: a store (begin, copy and finish), a renewal
// (sent, handled, answered), a mapped read (check and first word, last word and
// check), a fetch (pin, copy). The second one takes pages and fills them.
#ifndef FARKV_TESTS_MODEL_LEASE_WORLD_H_
#define FARKV_TESTS_MODEL_LEASE_WORLD_H_

#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/page/page_format.h"
#include "memory_node/directory/directory.h"
#include "tests/model/lease_oracle.h"
#include "tests/testing/manual_clock.h"

namespace farkv {

enum class LeaseOp : uint8_t {
  kTick,
  kJump,
  kSweep,
  kOpen,
  kReserve,
  kBeginStore,
  kFinishStore,
  kFree,
  kClose,
  kSendRenewal,
  kHandleRenewal,
  kAnswerRenewal,
  kBeginMapped,
  kEndMapped,
  kBeginFetch,
  kEndFetch,
  kOtherOpen,
  kOtherReserve,
  kOtherStore,
  kOtherFree,
};
inline constexpr size_t kNumLeaseOps = 20;
inline constexpr const char* kLeaseOpNames[kNumLeaseOps] = {"tick",
                                                            "jump",
                                                            "sweep",
                                                            "open",
                                                            "reserve",
                                                            "begin store",
                                                            "finish store",
                                                            "free",
                                                            "close",
                                                            "send renewal",
                                                            "handle renewal",
                                                            "answer renewal",
                                                            "begin mapped read",
                                                            "end mapped read",
                                                            "begin fetch",
                                                            "end fetch",
                                                            "other opens",
                                                            "other reserves",
                                                            "other stores",
                                                            "other frees"};

// What a search must have come across to be worth its name.
enum LeaseEvent : uint32_t {
  kPoolWasFull = 1,
  kPageChangedHands = 2,
  kLateStoreRefused = 4,
  kStoreLostItsPage = 8,
  kRenewalRefused = 16,
  kLateAnswer = 32,
  kReadWasGood = 64,
  kReadWasDiscarded = 128,
  kFetchOutlivedItsPage = 256,
  kSessionResumed = 512,
  kPlanRefused = 1024,
};
inline constexpr size_t kNumLeaseEvents = 11;
inline constexpr uint32_t kAllLeaseEvents = (1u << kNumLeaseEvents) - 1;
inline constexpr const char* kLeaseEventNames[kNumLeaseEvents] = {
    "pool full",           "page changed hands",    "late store refused",
    "store lost its page", "renewal refused",       "answer came too late",
    "mapped read good",    "mapped read discarded", "fetch outlived its page",
    "session resumed",     "late plan refused"};

struct LeaseWorldOptions {
  int num_pages = 1;
  // What a worker must do; a world without it is not safe.
  bool reader_checks = true;
  bool lease_counts_from_sending = true;
};

class LeaseWorld {
 public:
  static constexpr int kTick = 10, kJump = 3 * kTick;
  static constexpr int kLease[2] = {3 * kTick, 4 * kTick};
  static constexpr int kRenewedLease = 2 * kTick;
  static constexpr KvGeometry kGeometry{
      .num_layers = 1, .num_kv_heads = 1, .head_dim = 16};

  explicit LeaseWorld(const LeaseWorldOptions& options);

  bool Enabled(LeaseOp op) const;
  void Do(LeaseOp op);
  // Asks for every page under every generation that its users have known, and
  // compares all that can be seen; changes nothing.
  void Audit();
  // Equal for states from which the same can follow.
  std::string Key() const;
  // Ends everything; then every page must be free.
  void Finish();

  const std::string& failure() const { return failure_; }
  uint32_t events() const { return events_; }  // LeaseEvents since the start

 private:
  struct Worker {
    bool open = false;
    int life = 0, fence = 0;
    uint64_t number = 0;
    int page = -1;
    Generation generation;
    bool stored = false;
    Generation before;  // that of the page it had before
  };
  struct Store {
    int session = 0;
    StoreTicket ticket;
    int life = 0, page = 0;
    Generation generation;
  };
  struct Renewal {
    int sent = 0, life = 0;
    std::optional<bool> granted;  // once handled
  };
  struct MappedRead {
    int life = 0, page = 0;
    Generation generation;
    uint64_t first_word = 0;
  };
  struct Fetch {
    PagePin pin;
    int life = 0, page = 0;
    Generation generation;
  };

  static constexpr Epoch kEpoch{5};
  static constexpr PageName kPage{0, 0};
  static size_t Stride() { return PageLayout::T1(kGeometry).stride; }
  static PagePoolOptions PoolOptions(int num_pages);
  static DirectoryOptions NodeOptions();
  static SessionId IdOf(int s) {
    SessionId id;
    id.bytes.fill(static_cast<uint8_t>(s + 1));
    return id;
  }
  static DataCaller CallerOf(int s) { return {IdOf(s), kEpoch, "tenant"}; }
  // What session `s` stores under a generation, at both ends of the rows.
  static uint64_t Word(int s, Generation generation) {
    return generation.value * 16 + static_cast<uint64_t>(s) + 1;
  }
  static std::byte* WordAt(std::byte* page, bool last) {
    const PageLayout layout = PageLayout::T1(kGeometry);
    return page + layout.header_bytes +
           (last ? layout.payload_bytes - sizeof(uint64_t) : 0);
  }
  static uint64_t Load(const std::byte* at) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  static bool HoldsWords(std::byte* page, uint64_t word) {
    return Load(WordAt(page, false)) == word &&
           Load(WordAt(page, true)) == word;
  }

  std::byte* Memory(int p) const {
    return memory_ + static_cast<size_t>(p) * Stride();
  }
  Worker& worker(int s) { return workers_[static_cast<size_t>(s)]; }
  const Worker& worker(int s) const { return workers_[static_cast<size_t>(s)]; }
  // As a worker reads in place: its session is not lost, its fence ahead.
  bool Usable(int s) const {
    return worker(s).open && oracle_.now < worker(s).fence;
  }
  void Expect(bool holds, const char* what) {
    if (!holds && failure_.empty()) failure_ = what;
  }
  void ExpectStatus(const absl::Status& status, const Verdict& verdict,
                    const char* what);
  static void Forget(Worker& worker);

  void Advance(int seconds);
  void Open(int s);
  absl::StatusOr<TierPlanResult> Plan(int s, bool reserve);
  void Reserve(int s);
  void Adopt(int s, const PagePlacement& place);
  std::optional<Store> BeginStore(int s);
  void FinishStore(Store store);
  void FreePage(int s);
  void Close();
  void HandleRenewal();
  void AnswerRenewal();
  void BeginMapped();
  void EndMapped();
  void BeginFetch();
  void EndFetch();
  void AuditAccess(int s, Generation generation);
  void AuditMemory();
  void AuditCounts();
  void AuditFence(int s);

  const LeaseWorldOptions options_;
  std::string failure_;
  uint32_t events_ = 0;
  LeaseOracle oracle_;
  std::array<Worker, 2> workers_;
  Generation last_;  // of all given out

  ManualClock clock_;
  std::byte* memory_ = nullptr;
  PagePool pool_;
  Directory directory_;
  // What is under way at the first worker; pins end before the pool.
  std::optional<Store> store_;
  std::optional<Renewal> renewal_;
  std::optional<MappedRead> read_;
  std::optional<Fetch> fetch_;
};

}  // namespace farkv

#endif  // FARKV_TESTS_MODEL_LEASE_WORLD_H_

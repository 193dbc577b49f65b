// Leases, reuse and late messages, exhaustively: all operations of a tiny world
// (lease_world.h) in every order, breadth first, each state once. A failure
// names a shortest way to it.
//
// A state cannot be copied, so it is reached again by its operations; only the
// last one of a path is audited, those before it have been. States are told
// apart by what should be (the oracle), so every way into one is audited, not
// only the first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tests/model/lease_world.h"

namespace farkv {
namespace {

using Path = std::vector<LeaseOp>;

class LeaseSearch {
 public:
  // From where `start` leads, `depth` operations further.
  LeaseSearch(const LeaseWorldOptions& options, Path start, int depth)
      : options_(options), start_(std::move(start)), depth_(depth) {}

  // Stops at the first failure.
  void Run() {
    LeaseWorld world(options_);
    for (LeaseOp op : start_) {
      ASSERT_TRUE(world.Enabled(op)) << NameOf(op);
      world.Do(op);
    }
    seen_.insert(world.Key());
    states_.push_back({0, LeaseOp::kTick, 0, EnabledIn(world)});
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].depth == depth_) break;
      for (size_t op = 0; op < kNumLeaseOps && failure_.empty(); ++op) {
        if ((states_[i].enabled >> op & 1) == 0) continue;
        Try(i, static_cast<LeaseOp>(op));
      }
      if (!failure_.empty()) return;
    }
  }

  const std::string& failure() const { return failure_; }
  size_t num_states() const { return states_.size(); }
  size_t num_transitions() const { return transitions_; }
  size_t times(size_t event) const { return events_[event]; }

 private:
  struct State {
    size_t parent = 0;
    LeaseOp op = LeaseOp::kTick;  // that led here from the parent
    int depth = 0;
    uint32_t enabled = 0;  // operations
  };

  static const char* NameOf(LeaseOp op) {
    return kLeaseOpNames[static_cast<size_t>(op)];
  }
  static uint32_t EnabledIn(const LeaseWorld& world) {
    uint32_t enabled = 0;
    for (size_t op = 0; op < kNumLeaseOps; ++op) {
      if (world.Enabled(static_cast<LeaseOp>(op))) enabled |= 1u << op;
    }
    return enabled;
  }

  // All of it, start included.
  Path PathTo(size_t state) const {
    Path path;
    for (; state != 0; state = states_[state].parent) {
      path.push_back(states_[state].op);
    }
    path.insert(path.end(), start_.rbegin(), start_.rend());
    std::reverse(path.begin(), path.end());
    return path;
  }

  void Try(size_t from, LeaseOp op) {
    LeaseWorld world(options_);
    Path path = PathTo(from);
    for (LeaseOp before : path) world.Do(before);
    const uint32_t before = world.events();
    world.Do(op);
    ++transitions_;
    for (size_t e = 0; e < kNumLeaseEvents; ++e) {
      events_[e] += (world.events() & ~before) >> e & 1;
    }
    std::string key = world.Key();
    const uint32_t enabled = EnabledIn(world);
    if (world.failure().empty()) world.Audit();
    if (world.failure().empty()) world.Finish();
    if (!world.failure().empty()) {
      path.push_back(op);
      for (LeaseOp step : path) failure_ += absl::StrCat(NameOf(step), ", ");
      failure_ += world.failure();
      return;
    }
    if (!seen_.insert(std::move(key)).second) return;
    states_.push_back({from, op, states_[from].depth + 1, enabled});
  }

  const LeaseWorldOptions options_;
  const Path start_;
  const int depth_;
  std::vector<State> states_;
  absl::flat_hash_set<std::string> seen_;
  size_t transitions_ = 0;
  size_t events_[kNumLeaseEvents] = {};
  std::string failure_;
};

// Sanitizers are ten times as slow.
#ifdef FARKV_SANITIZED
constexpr int kLessDeep = 2;
#else
constexpr int kLessDeep = 0;
#endif

const Path kStored = {LeaseOp::kOpen, LeaseOp::kReserve, LeaseOp::kBeginStore,
                      LeaseOp::kFinishStore};

Path AfterStored(const Path& more) {
  Path path = kStored;
  path.insert(path.end(), more.begin(), more.end());
  return path;
}

// `transitions`, `events`: what the search has to have seen at full depth, so
// that it does not become empty unnoticed.
void ExpectNothingWrong(const LeaseWorldOptions& options, const Path& start,
                        int depth, size_t transitions, uint32_t events) {
  LeaseSearch search(options, start, depth - kLessDeep);
  search.Run();

  EXPECT_EQ(search.failure(), "");
  std::printf("%zu states, %zu transitions", search.num_states(),
              search.num_transitions());
  for (size_t event = 0; event < kNumLeaseEvents; ++event) {
    std::printf("; %zu x %s", search.times(event), kLeaseEventNames[event]);
    if (kLessDeep > 0 || (events >> event & 1) == 0) continue;
    EXPECT_GT(search.times(event), 0u) << kLeaseEventNames[event];
  }
  std::printf("\n");
  EXPECT_GT(search.num_transitions(), transitions >> (2 * kLessDeep + 1));
  if (kLessDeep == 0) {
    EXPECT_GT(search.num_transitions(), transitions);
  }
}

TEST(LeaseExhaustiveTest, OnePageIsOneSessionsAtATime) {
  ExpectNothingWrong({}, {}, 7, 14000, kAllLeaseEvents);
}

TEST(LeaseExhaustiveTest, TwoPagesAreNotMixedUp) {
  ExpectNothingWrong({.num_pages = 2}, {}, 7, 16000, kAllLeaseEvents);
}

// The read is stopped while leases, quarantines and the page's next owner come
// and go; the renewal is sent, and heard and answered at any time later.
TEST(LeaseExhaustiveTest, AStoppedReaderUsesNoRowsOfOthers) {
  ExpectNothingWrong(
      {}, AfterStored({LeaseOp::kBeginMapped, LeaseOp::kSendRenewal}), 7, 48000,
      kAllLeaseEvents);
}

TEST(LeaseExhaustiveTest, ACopyThatRunsKeepsItsPage) {
  ExpectNothingWrong(
      {}, AfterStored({LeaseOp::kBeginFetch, LeaseOp::kBeginStore}), 6, 20000,
      kFetchOutlivedItsPage | kStoreLostItsPage | kPoolWasFull);
}

// Worlds whose workers do less than they must: the search finds it.

TEST(LeaseExhaustiveTest, AReaderThatChecksNothingIsFound) {
  LeaseSearch search({.reader_checks = false},
                     AfterStored({LeaseOp::kBeginMapped, LeaseOp::kJump,
                                  LeaseOp::kJump, LeaseOp::kOtherOpen}),
                     3);
  search.Run();

  EXPECT_THAT(search.failure(),
              ::testing::HasSubstr("a read without checks was wrong"));
}

TEST(LeaseExhaustiveTest, ALeaseThatCountsFromItsAnswerIsFound) {
  LeaseSearch search({.lease_counts_from_sending = false},
                     {LeaseOp::kOpen, LeaseOp::kTick, LeaseOp::kSendRenewal,
                      LeaseOp::kHandleRenewal},
                     2);
  search.Run();

  EXPECT_THAT(search.failure(), ::testing::HasSubstr("outlives the node's"));
}

}  // namespace
}  // namespace farkv

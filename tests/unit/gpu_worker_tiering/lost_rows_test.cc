// Rows that are nowhere any more: which they are, against a trivial model; and
// that computing them again, while the others stay where they are, leaves every
// later output and every score with the bits of a run that has lost nothing.
#include "gpu_worker/tiering/lost_rows.h"

#include <stdlib.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"

namespace farkv {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FindLostTest : public ::testing::TestWithParam<int> {
 protected:
  // Everything stored, on two nodes in turn, and `rest` in the tail.
  void Fill(int pages, int rest) {
    sequence_.table.Append(pages * kPageTokens + rest, lines_);
    sequence_.remote.pages.resize(static_cast<size_t>(pages));
    for (int i = 0; i < pages; ++i) {
      sequence_.table.page(i).state = StoreState::kStored;
      sequence_.remote.pages[static_cast<size_t>(i)].node = i % 2;
    }
  }
  void Drop(int64_t position) {
    Page& page = sequence_.table.page(static_cast<int>(position / kPageTokens));
    sequence_.table.Drop(page, static_cast<int>(position % kPageTokens),
                         lines_);
  }

  const KvGeometry geometry_ = TestGeometry();
  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  T0Lines lines_ =
      T0Lines::Create(*device_, geometry_, GetParam(), uint64_t{8} << 20)
          .value();
  Sequence sequence_{SequenceId{1}, TestSpec(GetParam(), 20, 2000), 0,
                     geometry_, GetParam()};
};

// The model keeps for each token whether T0 has it and which node does.
TEST_P(FindLostTest, FindsThePositionsThatNobodyHasAndNoOthers) {
  constexpr int kPages = 12;
  Fill(kPages, 30);
  std::vector<bool> in_t0(kPages * kPageTokens + 30, true);
  const int g = GetParam();
  for (int round = 0; round < 200; ++round) {
    const auto draw = [&](uint64_t what, uint64_t below) {
      return static_cast<int>(
          CounterDraw(7, {static_cast<uint64_t>(round), what}) % below);
    };
    const int group = draw(0, static_cast<uint64_t>(kPages * kPageTokens / g));
    if (sequence_.table.page(group * g / kPageTokens).resident != 0) {
      Drop(int64_t{group} * g);
      for (int i = 0; i < g; ++i) {
        in_t0[static_cast<size_t>(group * g + i)] = false;
      }
    }
    sequence_.loss = SequenceLoss();
    std::vector<bool> healthy = {draw(1, 3) != 0, draw(2, 3) != 0};
    if (draw(3, 3) == 0) sequence_.loss.nodes.insert(draw(4, 2));
    for (int i = 0; i < draw(5, 3); ++i) {
      sequence_.loss.pages.insert(draw(6 + static_cast<uint64_t>(i), kPages));
    }
    const int gone = draw(9, kPages);
    sequence_.table.page(gone).state = StoreState::kLost;

    std::vector<int64_t> expected;
    for (size_t p = 0; p < in_t0.size(); ++p) {
      const int page = static_cast<int>(p) / kPageTokens;
      const bool on_node = page < kPages && page != gone &&
                           healthy[static_cast<size_t>(page % 2)] &&
                           !sequence_.loss.nodes.contains(page % 2) &&
                           !sequence_.loss.pages.contains(page);
      if (!in_t0[p] && !on_node) expected.push_back(static_cast<int64_t>(p));
    }

    EXPECT_THAT(FindLostPositions(sequence_, healthy),
                ElementsAreArray(expected));
    sequence_.table.page(gone).state = StoreState::kStored;
  }
  sequence_.table.Clear(lines_);
}

TEST_P(FindLostTest, WhatIsGivenUpStaysLostUntilItIsComputed) {
  Fill(3, 0);
  const int g = GetParam();
  Drop(0);
  Drop(kPageTokens);
  const std::vector<bool> healthy = {false, true};
  std::vector<int64_t> lost = FindLostPositions(sequence_, healthy);
  ASSERT_THAT(lost, SizeIs(static_cast<size_t>(g)));
  sequence_.loss.positions = lost;
  sequence_.table.page(0).state = StoreState::kLost;

  // A group has its line set before all of its rows have been computed.
  EXPECT_EQ(SetsForLost(sequence_, g), 1);
  sequence_.table.Adopt(sequence_.table.page(0), 0, lines_.Allocate());
  EXPECT_EQ(SetsForLost(sequence_, g), 0);
  EXPECT_THAT(FindLostPositions(sequence_, {true, true}),
              ElementsAreArray(lost));
  if (g > 1) {
    NoteRecomputed(sequence_, g - 1);
    EXPECT_EQ(sequence_.table.page(0).state, StoreState::kLost);
    EXPECT_THAT(FindLostPositions(sequence_, {true, true}),
                ElementsAreArray({lost.back()}));
  }
  NoteRecomputed(sequence_, 1);
  EXPECT_EQ(sequence_.table.page(0).state, StoreState::kFull);
  EXPECT_THAT(FindLostPositions(sequence_, {true, true}), IsEmpty());
  sequence_.table.Clear(lines_);
}

TEST_P(FindLostTest, OnlyRowsThatFollowFromTheTokensAreComputedAlone) {
  EXPECT_TRUE(MayRecomputeLostRows(sequence_, 0));
  EXPECT_FALSE(MayRecomputeLostRows(sequence_, 1));
  sequence_.spec.t2_ratio = 0;
  EXPECT_TRUE(MayRecomputeLostRows(sequence_, 1));
  sequence_.loss.is_repeated = true;
  EXPECT_FALSE(MayRecomputeLostRows(sequence_, 0));
  sequence_.loss.is_repeated = false;
  sequence_.spec.selection.policy = SelectionPolicy::kQuest;
  EXPECT_FALSE(MayRecomputeLostRows(sequence_, 0));
  sequence_.spec.selection.policy = SelectionPolicy::kNone;
  sequence_.spec.destruction = DestructionSettings();
  EXPECT_FALSE(MayRecomputeLostRows(sequence_, 0));
}

INSTANTIATE_TEST_SUITE_P(Granularities, FindLostTest,
                         ::testing::Values(1, 16, 64));

constexpr int64_t kPrompt = 150;
constexpr int64_t kStrike = 380;
constexpr int64_t kTotal = 440;

struct LossCase {
  int granularity;
  bool map;
  int rows_at_a_time;
  const char* device = "cpu";
};

class LostRowsTest : public ::testing::TestWithParam<LossCase> {
 protected:
  LostRowsTest() {
    options_.granularity = GetParam().granularity;
    options_.t0_bytes = uint64_t{1} << 20;
    options_.heartbeat = absl::Seconds(5);
    options_.lease = absl::Minutes(6);
    options_.rpc_timeout = absl::Minutes(2);
    spec_.placement.prompt_in_t0 = false;
    full_ = KvCache::Create(options_, geometry_, kQueryHeads, *device_).value();
    reference_ = std::make_unique<Harness>(*full_, *stream_, geometry_);
    full_id_ = full_->Open(spec_).value();
    Run(*full_, *reference_, full_id_, kTotal, kWait);
    options_.memory_nodes = {"0", "1"};
    options_.stripe_tokens = 64;
    options_.spread = true;
    if (GetParam().map) options_.map_dir = map_dir_;
    cache_ = KvCache::CreateWith(options_, geometry_, kQueryHeads, *device_,
                                 AccessTo(network_, {&a_, &b_}))
                 .value();
    harness_ = std::make_unique<Harness>(*cache_, *stream_, geometry_);
    id_ = cache_->Open(spec_).value();
    Run(*cache_, *harness_, id_, kStrike, kWait);
    EXPECT_TRUE(cache_->Drain(kWait).ok());
  }

  // Waits for stores now and then; those to a node that is down never end.
  static void Run(KvCache& cache, Harness& harness, SequenceId id, int64_t end,
                  absl::Duration wait) {
    while (cache.num_tokens(id) < end) {
      const int rows = cache.num_tokens(id) < kPrompt ? 50 : 1;
      ASSERT_TRUE(harness.Step(id, rows).ok());
      if (cache.num_tokens(id) % 8 != 0) continue;
      const absl::Status stored = cache.Drain(wait);
      ASSERT_TRUE(stored.ok() || wait < kWait) << stored;
    }
  }

  // Positions outside T0 of a page that `node` has, or of any.
  std::vector<int64_t> ColdOn(const std::string& node) const {
    std::vector<int64_t> cold;
    for (const PageTierMap& page : cache_->TierMap(id_)) {
      if (page.node_id != node) continue;
      for (size_t slot = 0; slot < page.tiers.size(); ++slot) {
        if (page.tiers[slot] != Tier::kT1) continue;
        cold.push_back(int64_t{page.page_index} * kPageTokens +
                       static_cast<int64_t>(slot));
      }
    }
    return cold;
  }

  // Steps until one fails for rows, which it must; what is given up.
  std::vector<int64_t> FailAndGiveUp() {
    absl::Status status;
    // What was asked for ahead has come, or is tried again otherwise.
    for (int i = 0; i < 4; ++i) {
      status = harness_->Step(id_, 1);
      if (absl::IsUnavailable(status)) break;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    return cache_->GiveUpLostRows(id_);
  }

  // What the row saw when it was computed for the second time, as the one
  // numbered `row` of the last step.
  void ExpectRowAsReference(int64_t position, size_t row) {
    const int64_t step =
        position < kPrompt ? position / 50 : kPrompt / 50 + position - kPrompt;
    const int64_t row_then = position < kPrompt ? position % 50 : 0;
    const auto width = static_cast<size_t>(kQueryHeads * geometry_.head_dim);
    for (size_t layer = 0; layer < 3; ++layer) {
      const auto& then =
          reference_->outputs()[static_cast<size_t>(step)][layer];
      const auto& now = harness_->outputs().back()[layer];
      const float* expected = &then[static_cast<size_t>(row_then) * width];
      ASSERT_TRUE(std::equal(expected, expected + width, &now[row * width]))
          << "position " << position << ", layer " << layer;
    }
  }

  absl::Status Recompute(std::vector<int64_t>& lost) {
    const auto rows = std::min<size_t>(
        lost.size(), static_cast<size_t>(GetParam().rows_at_a_time));
    const auto end = lost.begin() + static_cast<ptrdiff_t>(rows);
    const absl::Status status =
        harness_->Step({{id_, static_cast<int>(rows), {lost.begin(), end}}});
    if (!status.ok()) return status;
    steps_again_.insert(harness_->outputs().size() - 1);
    for (size_t r = 0; r < rows; ++r) ExpectRowAsReference(lost[r], r);
    lost.erase(lost.begin(), end);
    return status;
  }

  void RecomputeAll(std::vector<int64_t> lost) {
    while (!lost.empty()) {
      const absl::Status status = Recompute(lost);
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  // But for the steps that computed rows again.
  void ExpectAsReference() {
    Run(*cache_, *harness_, id_, kTotal, absl::Milliseconds(20));
    const auto& expected = reference_->outputs();
    const auto& outputs = harness_->outputs();
    ASSERT_EQ(outputs.size(), expected.size() + steps_again_.size());
    ASSERT_GT(steps_again_.size(), 0u);
    size_t step = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (steps_again_.contains(i)) continue;
      ASSERT_EQ(outputs[i], expected[step++]) << i;
    }
    EXPECT_EQ(cache_->Scores(id_), full_->Scores(full_id_));
  }

  static constexpr absl::Duration kWait = absl::Seconds(20);
  char map_template_[24] = "/tmp/farkv-map-XXXXXX";
  const std::string map_dir_ = GetParam().map ? mkdtemp(map_template_) : "";
  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ =
      OpenDevice(GetParam().device, pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode a_{network_, geometry_, "a", 4096, map_dir_};
  TestNode b_{network_, geometry_, "b", 4096, map_dir_};
  TieringOptions options_;
  SequenceSpec spec_ = TestSpec(GetParam().granularity, kPrompt, kTotal);
  std::unique_ptr<KvCache> full_, cache_;
  std::unique_ptr<Harness> reference_, harness_;
  SequenceId full_id_, id_;
  std::set<size_t> steps_again_;
};

TEST_P(LostRowsTest, OfOneOfTwoNodesAreComputedAgainAndChangeNoBit) {
  const std::vector<int64_t> of_a = ColdOn("a");
  ASSERT_FALSE(of_a.empty());
  ASSERT_FALSE(ColdOn("b").empty());
  a_.SetDown(true);

  const std::vector<int64_t> lost = FailAndGiveUp();

  EXPECT_THAT(lost, ElementsAreArray(of_a));
  RecomputeAll(lost);
  ExpectAsReference();
  for (const PageTierMap& page : cache_->TierMap(id_)) {
    if (page.stored && !ColdOn(page.node_id).empty() &&
        std::count(page.tiers.begin(), page.tiers.end(), Tier::kT1) > 0) {
      EXPECT_EQ(page.node_id, "b") << page.page_index;
    }
  }
}

TEST_P(LostRowsTest, OfANodeThatForgotThemGoToItOnceMore) {
  const std::vector<int64_t> of_b = ColdOn("b");
  b_.Restart();

  const std::vector<int64_t> lost = FailAndGiveUp();

  EXPECT_THAT(lost, ElementsAreArray(of_b));
  RecomputeAll(lost);
  ExpectAsReference();
}

// One bit of one row of one layer.
TEST_P(LostRowsTest, OfADamagedPageAreNoMoreThanItsOwn) {
  const std::vector<int64_t> cold = ColdOn("a");
  const int64_t position = cold[cold.size() / 2];
  const auto page = static_cast<int32_t>(position / kPageTokens);
  a_.DamageRow(1, page, 0, static_cast<int>(position % kPageTokens));
  // A page that is mapped was checked at its first use.
  if (GetParam().map) a_.GiveAway(1, page);

  const std::vector<int64_t> lost = FailAndGiveUp();

  std::vector<int64_t> of_page;
  std::copy_if(cold.begin(), cold.end(), std::back_inserter(of_page),
               [&](int64_t p) { return p / kPageTokens == page; });
  EXPECT_THAT(lost, ElementsAreArray(of_page));
  EXPECT_LE(lost.size(), static_cast<size_t>(kPageTokens));
  RecomputeAll(lost);
  ExpectAsReference();
  // Its first place is free again: every page is reserved once.
  EXPECT_EQ(a_.used_pages() + b_.used_pages(),
            geometry_.num_layers * (kTotal / kPageTokens));
}

TEST_P(LostRowsTest, AreMoreWhenTheOtherNodeForgetsItsOwnMeanwhile) {
  a_.SetDown(true);
  std::vector<int64_t> lost = FailAndGiveUp();
  const std::set<int64_t> first(lost.begin(), lost.end());
  ASSERT_TRUE(Recompute(lost).ok());
  // A page that is whole again may be stored and cold by then.
  std::set<int64_t> all = first;
  for (const int64_t position : ColdOn("b")) all.insert(position);
  b_.Restart();
  // Whatever the step can still do, in the end one needs what is lost.
  while (!lost.empty() && Recompute(lost).ok()) {
  }

  std::vector<int64_t> again = cache_->GiveUpLostRows(id_);
  if (again.empty()) again = FailAndGiveUp();

  for (const int64_t position : lost) {
    EXPECT_THAT(again, ::testing::Contains(position));
  }
  EXPECT_TRUE(
      std::includes(all.begin(), all.end(), again.begin(), again.end()));
  EXPECT_TRUE(std::is_sorted(again.begin(), again.end()));
  RecomputeAll(again);
  ExpectAsReference();
}

TEST_P(LostRowsTest, AStepThatIsDiscardedLeavesThemLost) {
  a_.SetDown(true);
  const std::vector<int64_t> lost = FailAndGiveUp();
  const uint64_t used = cache_->t0_usage().used_bytes;
  const StepRows rows[] = {{id_, static_cast<int32_t>(lost.size()) / 2}};

  ASSERT_TRUE(cache_->Begin(rows, *stream_).ok());
  EXPECT_GT(cache_->t0_usage().used_bytes, used);
  cache_->Discard();

  EXPECT_EQ(cache_->t0_usage().used_bytes, used);
  const StepRows too_many[] = {{id_, static_cast<int32_t>(lost.size()) + 1}};
  EXPECT_EQ(cache_->Begin(too_many, *stream_).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(cache_->GiveUpLostRows(id_), ElementsAreArray(lost));
  RecomputeAll(lost);
  ExpectAsReference();
}

TEST_P(LostRowsTest, NothingIsGivenUpThatIsThere) {
  EXPECT_THAT(cache_->GiveUpLostRows(id_), IsEmpty());
  EXPECT_TRUE(harness_->Step(id_, 1).ok());
}

INSTANTIATE_TEST_SUITE_P(Cases, LostRowsTest,
                         ::testing::Values(LossCase{1, false, 48},
                                           LossCase{16, false, 24},
                                           LossCase{16, true, 64},
                                           LossCase{64, false, 7},
                                           LossCase{64, true, 128},
                                           LossCase{16, false, 40, "fake"}));

}  // namespace
}  // namespace farkv

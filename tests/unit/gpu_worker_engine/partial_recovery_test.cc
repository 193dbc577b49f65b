// Of the rows that a request has outside T0 some are lost: these alone are
// computed again, as many tokens as there were lost ones, and tokens and logits
// have the bits of a run without nodes (DESIGN P5).
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;

struct Case {
  int granularity = 16;
  bool map = false;
  const char* device = "cpu";
};

// Two nodes that have pages by turns. All stores have ended when a token is
// handed over, so that what is cold then is what would be lost.
class PartialRecoveryTest : public EngineOverNodes,
                            public ::testing::WithParamInterface<Case> {
 protected:
  PartialRecoveryTest() { Configure({}); }
  ~PartialRecoveryTest() override { engine_ = nullptr; }

  void Configure(const Case& given) {
    options_.device = given.device;
    options_.placement.granularity = given.granularity;
    options_.tiering.granularity = given.granularity;
    options_.tiering.spread = true;
    options_.tiering.stripe_tokens = 64;
    options_.await_stores_every = 1;
    options_.prefill_chunk = 48;
    if (given.map) options_.tiering.map_dir = map_dir_;
  }

  void StartOverBoth(int64_t sets) { StartOver(sets, {&c_, &d_}); }

  // By the request's tier map.
  static std::vector<int64_t> ColdOn(const EngineView& engine,
                                     const std::string& request,
                                     const std::string& node) {
    std::vector<int64_t> cold;
    const auto pages = engine.TierMap(request);
    for (const PageTierMap& page : *pages) {
      for (size_t slot = 0; slot < page.tiers.size(); ++slot) {
        if (page.tiers[slot] != Tier::kT1 || page.node_id != node) continue;
        cold.push_back(int64_t{page.page_index} * kPageTokens +
                       static_cast<int64_t>(slot));
      }
    }
    return cold;
  }

  // Calls `strike` once, with the request's cold positions on c, as soon as
  // both nodes have some and c at least `least`.
  void StrikeAt(const std::string& request, size_t least,
                std::function<void(const std::vector<int64_t>&)> strike) {
    on_token_ = [=, this](const EngineView& engine, const std::string& id) {
      if (id != request || struck_) return;
      const std::vector<int64_t> cold = ColdOn(engine, id, "c");
      if (cold.size() < least || ColdOn(engine, id, "d").empty()) return;
      struck_ = true;
      strike(cold);
    };
  }

  int PartialRecoveries() const { return Count("partial_recoveries_total"); }

  char map_template_[24] = "/tmp/farkv-map-XXXXXX";
  const std::string map_dir_ = mkdtemp(map_template_);
  TestNode c_{network_, kGeometry, "c", 4096, map_dir_};
  TestNode d_{network_, kGeometry, "d", 4096, map_dir_};
  std::atomic<bool> struck_ = false;
  std::atomic<int64_t> lost_ = -1;
};

TEST_P(PartialRecoveryTest, OfOneOfTwoNodesOnlyItsRowsAreComputedAgain) {
  Configure(GetParam());
  const GenerationRequest request = Request("main", 32, 400);
  StartOverBoth(2 * ShareInSets(request));
  StrikeAt("main", 100, [this](const std::vector<int64_t>& cold) {
    lost_ = static_cast<int64_t>(cold.size());
    c_.SetDown(true);
  });

  const Output run = Collect(*Submit(request));

  ASSERT_TRUE(struck_);
  ExpectAsAlone(run, request);
  EXPECT_EQ(run.end.tiers.recomputed_tokens, lost_);
  EXPECT_EQ(Recoveries(), 1);
  EXPECT_EQ(PartialRecoveries(), 1);
  ExpectNothingLeft({&d_});
}

TEST_P(PartialRecoveryTest, OfADamagedPageOnlyItsRowsAreComputedAgain) {
  Configure(GetParam());
  const GenerationRequest request = Request("main", 32, 400);
  StartOverBoth(2 * ShareInSets(request));
  StrikeAt("main", 100, [&](const std::vector<int64_t>& cold) {
    const auto page = static_cast<int32_t>(cold.back() / kPageTokens);
    lost_ = std::count_if(cold.begin(), cold.end(), [page](int64_t position) {
      return position / kPageTokens == page;
    });
    // A mapped page is checked at its first use; so it is given away.
    GetParam().map
        ? c_.GiveAway(3, page)
        : c_.DamageRow(3, page, 1, static_cast<int>(cold.back() % kPageTokens));
  });

  const Output run = Collect(*Submit(request));

  ASSERT_TRUE(struck_);
  ExpectAsAlone(run, request);
  EXPECT_EQ(run.end.tiers.recomputed_tokens, lost_);
  EXPECT_THAT(lost_.load(), AllOf(Gt(0), Le(kPageTokens)));
  EXPECT_EQ(PartialRecoveries(), 1);
  ExpectNothingLeft({&c_, &d_});
}

INSTANTIATE_TEST_SUITE_P(Cases, PartialRecoveryTest,
                         ::testing::Values(Case{1}, Case{16}, Case{64},
                                           Case{16, true},
                                           Case{16, false, "fake"}));

class RecoveryOfSomeRowsTest : public PartialRecoveryTest {};

TEST_F(RecoveryOfSomeRowsTest, CompanyThatLostRowsToo) {
  const GenerationRequest first = Request("first", 32, 400);
  const GenerationRequest second = Request("the second", 100, 350);
  GenerationRequest hot = Request("hot", 20, 400);
  hot.hbm_ratio = 10000;
  StartOverBoth(2 * (ShareInSets(first) + ShareInSets(second)) +
                ShareInSets(hot));
  StrikeAt("first", 100, [this](const std::vector<int64_t>&) { c_.Restart(); });

  const auto one = Submit(first);
  const auto two = Submit(second);
  const auto three = Submit(hot);

  for (const auto& [stream, request] :
       {std::pair(one, first), {two, second}, {three, hot}}) {
    const Output run = Collect(*stream);
    ExpectAsAlone(run, request);
    EXPECT_LT(run.end.tiers.recomputed_tokens, 300);
  }
  EXPECT_EQ(Recoveries(), 2);
  EXPECT_EQ(PartialRecoveries(), 2);
  ExpectNothingLeft({&c_, &d_});
}

// The company has tokens meanwhile.
TEST_F(RecoveryOfSomeRowsTest, AnotherNodeIsLostInTheMiddleOfIt) {
  options_.prefill_chunk = 16;
  const GenerationRequest request = Request("main", 32, 500);
  GenerationRequest company = Request("company", 32, 600);
  company.hbm_ratio = 10000;
  StartOverBoth(2 * ShareInSets(request) + ShareInSets(company));
  StrikeAt("main", 100, [this](const std::vector<int64_t>&) { c_.Restart(); });
  WhileRecomputed("main", [this] { d_.Restart(); });

  const auto main = Submit(request);
  const auto beside = Submit(company);
  const Output run = Collect(*main);

  ExpectAsAlone(run, request);
  ExpectAsAlone(Collect(*beside), company);
  EXPECT_GE(Recoveries(), 2);
  EXPECT_GE(PartialRecoveries(), 1);
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  ExpectNothingLeft({&c_, &d_});
}

TEST_F(RecoveryOfSomeRowsTest, APageOfThePromptWhileItComesIn) {
  options_.placement.prompt_in_t0 = false;
  const GenerationRequest request = Request("main", 600, 50);
  std::atomic<int> answers = 0;
  // Generation of the first page in one layer, and its node: all answers about
  // it are damaged.
  std::atomic<uint64_t> damaged = 0;
  std::atomic<TestNode*> bad = nullptr;
  for (TestNode* node : {&c_, &d_}) {
    node->EditFetches(
        [&, node](FetchReply& reply, std::vector<std::byte>& rows) {
          if (rows.empty() || reply.items.front().page_index != 0) return;
          const uint64_t generation = reply.items.front().generation.value;
          if (++answers == 12) {
            damaged = generation;
            bad = node;
          }
          if (bad == node && damaged == generation) rows[0] ^= std::byte{1};
        });
  }
  StartOverBoth(2 * ShareInSets(request));

  const Output run = Collect(*Submit(request));

  ASSERT_GT(damaged.load(), 0u);
  ExpectAsAlone(run, request);
  EXPECT_GE(PartialRecoveries(), 1);
  EXPECT_THAT(run.end.tiers.recomputed_tokens, AllOf(Gt(0), Le(kPageTokens)));
  EXPECT_EQ(run.end.prompt_tokens, 600);
  ExpectNothingLeft({&c_, &d_});
}

TEST_F(RecoveryOfSomeRowsTest, ALittleT0TakesAFewAtATime) {
  const GenerationRequest request = Request("main", 32, 500);
  StartOverBoth(ShareInSets(request) + 1);
  StrikeAt("main", 150, [this](const std::vector<int64_t>& cold) {
    lost_ = static_cast<int64_t>(cold.size());
    c_.SetDown(true);
  });

  const Output run = Collect(*Submit(request));

  ASSERT_TRUE(struck_);
  ExpectAsAlone(run, request);
  EXPECT_EQ(run.end.tiers.recomputed_tokens, lost_);
  ExpectNothingLeft({&d_});
}

// Parked, it would come back and ask for as many rows again, in vain for as
// long as the company runs.
TEST_F(RecoveryOfSomeRowsTest, ALittleT0BesideCompanyTakesAFewAtATime) {
  options_.prefill_chunk = 512;
  const GenerationRequest request = Request("main", 32, 500);
  GenerationRequest company = Request("company", 32, 560);
  company.hbm_ratio = 10000;
  StartOverBoth(ShareInSets(request) + ShareInSets(company) + 1);
  StrikeAt("main", 150, [this](const std::vector<int64_t>& cold) {
    lost_ = static_cast<int64_t>(cold.size());
    c_.SetDown(true);
  });

  const auto beside = Submit(company);
  const Output run = Collect(*Submit(request));
  ExpectAsAlone(Collect(*beside), company);

  ASSERT_TRUE(struck_);
  ExpectAsAlone(run, request);
  EXPECT_EQ(run.end.tiers.recomputed_tokens, lost_);
  EXPECT_LT(Count("parked_sequences_total"), 20);
}

TEST_F(RecoveryOfSomeRowsTest, WhoMayCompressIsRecomputedAsAWhole) {
  options_.tiering.t2_ratio = 1;
  const GenerationRequest request = Request("main", 32, 300);
  StartOverBoth(2 * ShareInSets(request));
  StrikeAt("main", 64, [this](const std::vector<int64_t>& cold) {
    lost_ = static_cast<int64_t>(cold.size());
    c_.SetDown(true);
  });

  const Output run = Collect(*Submit(request));

  ASSERT_TRUE(struck_);
  EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
  EXPECT_EQ(PartialRecoveries(), 0);
  EXPECT_GT(run.end.tiers.recomputed_tokens, lost_);
}

}  // namespace
}  // namespace farkv

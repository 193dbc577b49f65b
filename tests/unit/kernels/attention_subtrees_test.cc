// Pushdown's arithmetic: pages divided among parties in any way give the bits
// of one party that has them all, outputs and scores alike.
#include <cstring>
#include <map>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/unit/kernels/attention_case.h"

namespace farkv {
namespace {

constexpr int kLength = 2500;  // 40 pages, the last one not full
constexpr int kPosition = kLength - 1;

ShapeOptions Shape(DType dtype, double dead) {
  ShapeOptions options;
  options.geometry = {
      .num_layers = 2, .num_kv_heads = 2, .head_dim = 32, .dtype = dtype};
  options.group = 3;
  options.dead_share = dead;
  return options;
}

AttentionArgs ArgsOf(const ShapeOptions& options, const float* query) {
  AttentionArgs args;
  args.geometry = options.geometry;
  args.num_query_heads = options.geometry.num_kv_heads * options.group;
  args.scale = ScaleOf(options.geometry);
  args.queries = query;
  return args;
}

AttentionSequence RowAt(int64_t position, std::span<const PageRuns> pages) {
  AttentionSequence sequence;
  sequence.num_rows = 1;
  sequence.first_position = position;
  sequence.pages = pages;
  return sequence;
}

struct Subtree {
  SubtreeId id;
  std::vector<float> m, l, out;
};

struct Leaf {
  int32_t page_index;
  std::vector<float> weights, m;
};

// What one party that is not the worker computes and keeps.
struct Party {
  std::vector<PageRuns> pages;
  std::vector<Subtree> subtrees;
  std::vector<Leaf> leaves;

  void Attend(ThreadPool& pool, AttentionArgs args, const LeafKernel& kernel,
              int64_t position) {
    const AttentionSequence row = RowAt(position, pages);
    args.sequences = {&row, 1};
    const auto heads = static_cast<size_t>(args.num_query_heads);
    const size_t dim = static_cast<size_t>(args.geometry.head_dim);
    SubtreeSink sink;
    sink.subtree = [&](int, SubtreeId id, PartialView view) {
      subtrees.push_back({id,
                          {view.m, view.m + heads},
                          {view.l, view.l + heads},
                          {view.out, view.out + heads * dim}});
    };
    sink.leaf = [&](int, int page, const float* weights, const float* m) {
      leaves.push_back({pages[static_cast<size_t>(page)].page_index,
                        {weights, weights + heads * kPageTokens},
                        {m, m + heads}});
    };
    RunSubtrees(pool, args, kernel, sink);
  }
};

struct Row {
  std::vector<float> out;
  std::vector<int64_t> scores;

  friend bool operator==(const Row&, const Row&) = default;
};

// The row at kPosition with page p computed by party owner[p]; 0 is the worker.
Row Divided(const CaseSequence::Laid& laid, const CaseSequence& sequence,
            const ShapeOptions& options, const LeafKernel& kernel, int threads,
            const std::vector<int>& owner, int num_parties) {
  ThreadPool pool(threads);
  AttentionArgs args = ArgsOf(options, sequence.query(kPosition));
  std::vector<Party> parties(static_cast<size_t>(num_parties));
  for (size_t p = 0; p < laid.pages.size(); ++p) {
    parties[static_cast<size_t>(owner[p])].pages.push_back(laid.pages[p]);
  }
  Row row;
  row.out.resize(static_cast<size_t>(args.num_query_heads) * 32);
  row.scores.assign(laid.pages.size() * kPageTokens, 0);
  std::map<int64_t, ForeignSubtree> in_order;
  for (size_t i = 1; i < parties.size(); ++i) {
    parties[i].Attend(pool, args, kernel, kPosition);
    for (Subtree& s : parties[i].subtrees) {
      in_order[s.id.begin()] = {s.id, {s.m.data(), s.l.data(), s.out.data()}};
    }
  }
  AttentionElsewhere elsewhere;
  elsewhere.wait = [&] {
    for (const auto& [page, subtree] : in_order) {
      elsewhere.subtrees.push_back(subtree);
    }
  };
  AttentionSequence own = RowAt(kPosition, parties[0].pages);
  own.scores = row.scores;
  own.elsewhere = &elsewhere;
  args.sequences = {&own, 1};
  args.out = row.out.data();
  RunAttention(pool, args, kernel);
  for (const Party& party : parties) {
    for (const Leaf& leaf : party.leaves) {
      AddLeafScores(args, leaf.weights.data(), leaf.m.data(),
                    elsewhere.m.data(), elsewhere.l.data(),
                    row.scores.data() + leaf.page_index * kPageTokens);
    }
  }
  return row;
}

class AttentionSubtreesTest : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionSubtreesTest, AnyDivisionOfThePagesGivesTheBitsOfOneParty) {
  const ShapeOptions options = Shape(GetParam(), 0.2);
  const CaseSequence sequence(options, kLength, 31);
  const auto laid = sequence.LayOut(Placement::kPages);
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    const Row want = Divided(laid, sequence, options, kernel, 1,
                             std::vector<int>(laid.pages.size(), 0), 1);
    for (int parties = 2; parties <= 4; ++parties) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        // Runs of pages of one party, from single ones to half of all.
        std::vector<int> owner;
        for (uint64_t n = 0; owner.size() < laid.pages.size(); ++n) {
          const uint64_t draw = CounterDraw(seed, {n});
          owner.insert(owner.end(), 1 + (draw >> 8) % (1 + seed * 4),
                       static_cast<int>(draw % static_cast<uint64_t>(parties)));
        }
        owner.resize(laid.pages.size());
        EXPECT_EQ(Divided(laid, sequence, options, kernel,
                          1 + static_cast<int>(seed % 3), owner, parties),
                  want)
            << parties << " parties, seed " << seed;
      }
    }
  }
}

TEST_P(AttentionSubtreesTest, APartyWithAllPagesLeavesTheWorkerOnlyTheMerge) {
  const ShapeOptions options = Shape(GetParam(), 0);
  const CaseSequence sequence(options, kLength, 32);
  const auto laid = sequence.LayOut(Placement::kPages);
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    EXPECT_EQ(Divided(laid, sequence, options, kernel, 2,
                      std::vector<int>(laid.pages.size(), 1), 2),
              Divided(laid, sequence, options, kernel, 1,
                      std::vector<int>(laid.pages.size(), 0), 1));
  }
}

TEST_P(AttentionSubtreesTest, OnlyMaximalCompleteSubtreesAreSent) {
  const ShapeOptions options = Shape(GetParam(), 0);
  const CaseSequence sequence(options, kLength, 33);
  const auto laid = sequence.LayOut(Placement::kPages);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Party party;
    for (const int page : {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 39}) {
      party.pages.push_back(laid.pages[static_cast<size_t>(page)]);
    }
    party.Attend(pool, ArgsOf(options, sequence.query(kPosition)),
                 ChooseLeafKernel(GetParam()), kPosition);
    std::vector<SubtreeId> ids;
    for (const Subtree& subtree : party.subtrees) ids.push_back(subtree.id);
    EXPECT_EQ(ids, (std::vector<SubtreeId>{
                       {0, 1}, {1, 1}, {2, 1}, {0, 8}, {1, 5}, {0, 39}}));
    EXPECT_EQ(party.leaves.size(), party.pages.size());
  }
}

INSTANTIATE_TEST_SUITE_P(, AttentionSubtreesTest,
                         ::testing::Values(DType::kBf16, DType::kF32),
                         [](const auto& test) {
                           return test.param == DType::kBf16 ? "Bf16" : "F32";
                         });

}  // namespace
}  // namespace farkv

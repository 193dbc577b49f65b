// Attention on the CPU: each row is finished along the tree, then scores are
// added page by page (attention_round.h has what comes before).
#include <algorithm>
#include <vector>

#include "kernels/attention_round.h"
#include "kernels/attention_scores.h"
#include "kernels/attention_t2.h"
#include "kernels/cpu_features.h"

namespace farkv {
namespace {

constexpr double kFixedPointOne = 0x1p+40;

// One page of one sequence and the blocks of the round that may score it.
struct ScoredPage {
  int first_block;
  int end_block;
  int page;
};

struct FinishScratch {
  AttentionTree tree;
  std::vector<ScoredPage> pages;
};

// Adds a row's splits and what others computed, in order.
void AddSubtrees(const AttentionCall& call, const RowBlock& block,
                 size_t first_split, int row, AttentionTree& tree) {
  const int heads = call.args->num_query_heads;
  const int dim = call.args->geometry.head_dim;
  std::span<const ForeignSubtree> foreign;
  const AttentionElsewhere* elsewhere = call.SequenceOf(block).elsewhere;
  if (elsewhere != nullptr) foreign = elsewhere->subtrees;
  const auto add_foreign_before = [&](int64_t page) {
    while (!foreign.empty() && foreign.front().id.begin() < page) {
      CopyPartials(heads, dim, foreign.front().partials,
                   tree.Begin(foreign.front().id));
      foreign = foreign.subspan(1);
    }
  };
  for (int split = 0; split < block.num_splits; ++split) {
    const SubtreeId id =
        call.round->splits[first_split + static_cast<size_t>(split)];
    add_foreign_before(id.begin());
    CopyPartials(heads, dim, call.Partial(block, split, row), tree.Begin(id));
  }
  add_foreign_before(int64_t{1} << AttentionTree::kRootLevel);
}

// Merges a row's subtrees, normalises, and leaves the final m and l in the
// partial of split 0.
void FinishRow(const AttentionCall& call, const RowBlock& block,
               size_t first_split, int row) {
  const int heads = call.args->num_query_heads;
  const int dim = call.args->geometry.head_dim;
  const PartialView result = call.Partial(block, 0, row);
  AttentionElsewhere* elsewhere = call.SequenceOf(block).elsewhere;
  if (block.num_splits != 1 || elsewhere != nullptr) {
    AttentionTree& tree = ThreadScratch<FinishScratch>().tree;
    tree.Reset(heads, dim, AttentionTree::Gaps::kAbsent);
    AddSubtrees(call, block, first_split, row, tree);
    CopyPartials(heads, dim, tree.Root(), result);
  }
  if (elsewhere != nullptr) {
    elsewhere->m.assign(result.m, result.m + heads);
    elsewhere->l.assign(result.l, result.l + heads);
  }
  NormalizePartials(
      heads, dim, result,
      call.args->out + call.RowOf(block, row) * call.heads() * call.head_dim());
}

LeafScoreCall ScoreCall(const AttentionArgs& args, const float* weights,
                        const float* m_leaf, const float* m, const float* l) {
  return {
      .num_heads = args.num_query_heads,
      .weights = weights,
      .m_leaf = m_leaf,
      .m = m,
      .l = l,
      .scale = kFixedPointOne / (static_cast<double>(args.geometry.num_layers) *
                                 static_cast<double>(args.num_query_heads))};
}

// Adds to the scores of the page from position `first` on that exist.
void AddToScores(const LeafScoreCall& leaf, size_t first,
                 std::span<int64_t> scores) {
  if (first + kPageTokens <= scores.size()) {
    AddPageScores(leaf, scores.data() + first);
    return;
  }
  int64_t page[kPageTokens] = {};
  AddPageScores(leaf, page);
  for (size_t s = 0; first + s < scores.size(); ++s) {
    scores[first + s] += page[s];
  }
}

// Of a leaf, each KV head apart, to AttentionSequence::head_scores.
void AddToHeadScores(const AttentionArgs& args, const LeafScoreCall& all,
                     size_t first, const AttentionSequence& sequence) {
  const int group = args.num_query_heads / args.geometry.num_kv_heads;
  const size_t length = sequence.scores.size();
  for (int head = 0; head < args.geometry.num_kv_heads; ++head) {
    const int offset = head * group;
    LeafScoreCall leaf = all;
    leaf.num_heads = group;
    leaf.weights += static_cast<ptrdiff_t>(offset) * kPageTokens;
    leaf.m_leaf += offset;
    leaf.m += offset;
    leaf.l += offset;
    leaf.scale = kFixedPointOne / static_cast<double>(group);
    AddToScores(leaf, first,
                sequence.head_scores.subspan(static_cast<size_t>(head) * length,
                                             length));
  }
}

void ScorePage(const AttentionCall& call, const ScoredPage& item) {
  for (int b = item.first_block; b < item.end_block; ++b) {
    const RowBlock& block = call.round->blocks[static_cast<size_t>(b)];
    if (item.page >= block.num_pages) continue;
    const AttentionSequence& sequence = call.SequenceOf(block);
    const int64_t first =
        static_cast<int64_t>(
            sequence.pages[static_cast<size_t>(item.page)].page_index) *
        kPageTokens;
    for (int row = 0; row < block.num_rows; ++row) {
      if (call.PositionOf(block, row) < first) continue;
      const size_t leaf = call.LeafOf(block, row, item.page);
      const PartialView whole = call.Partial(block, 0, row);
      const float* weights = call.weights + leaf * call.heads() * kPageTokens;
      const LeafScoreCall scored =
          ScoreCall(*call.args, weights, call.leaf_m + leaf * call.heads(),
                    whole.m, whole.l);
      AddToScores(scored, static_cast<size_t>(first), sequence.scores);
      if (sequence.head_scores.empty()) continue;
      AddToHeadScores(*call.args, scored, static_cast<size_t>(first), sequence);
    }
  }
}

// Each page of a sequence is one item, so that no two threads add to the same
// scores.
void ListScoredPages(const AttentionRound& round,
                     std::vector<ScoredPage>& pages) {
  pages.clear();
  const int count = static_cast<int>(round.blocks.size());
  for (int b = 0; b < count;) {
    const RowBlock& block = round.blocks[static_cast<size_t>(b)];
    int end = b;
    int num_pages = 0;
    for (; end < count; ++end) {
      const RowBlock& other = round.blocks[static_cast<size_t>(end)];
      if (other.sequence != block.sequence) break;
      num_pages = other.num_pages;  // later rows see at least as many
    }
    for (int page = 0; block.scored && page < num_pages; ++page) {
      pages.push_back({b, end, page});
    }
    b = end;
  }
}

void RunRound(ThreadPool& pool, const AttentionArgs& args,
              const LeafKernel& kernel, RoundScratch& scratch) {
  const AttentionRound& round = scratch.round;
  const AttentionCall call = RunUnits(pool, args, kernel, scratch);
  for (const RowBlock& block : round.blocks) {
    AttentionElsewhere* elsewhere = call.SequenceOf(block).elsewhere;
    if (elsewhere != nullptr) elsewhere->wait();
  }
  pool.ParallelFor(static_cast<int64_t>(scratch.rows.size()), [&](int64_t i) {
    const RowOfBlock& item = scratch.rows[static_cast<size_t>(i)];
    const size_t b = static_cast<size_t>(item.block);
    FinishRow(call, round.blocks[b], round.first_split[b], item.row);
  });
  std::vector<ScoredPage>& pages = ThreadScratch<FinishScratch>().pages;
  ListScoredPages(round, pages);
  pool.ParallelFor(static_cast<int64_t>(pages.size()), [&](int64_t i) {
    ScorePage(call, pages[static_cast<size_t>(i)]);
  });
}

}  // namespace

LeafKernel ChooseLeafKernel(DType dtype) {
  return dtype == DType::kBf16 && HasAvx512Bf16() ? Avx512Bf16LeafKernel()
                                                  : HighwayLeafKernel(dtype);
}

void RunAttention(ThreadPool& pool, const AttentionArgs& args,
                  const LeafKernel& kernel) {
  RoundScratch& scratch = ThreadScratch<RoundScratch>();
  const AttentionLimits limits = scratch.Prepare(args, kernel, pool);
  AttentionCursor cursor;
  while (PlanRound(args, limits, cursor, scratch.round)) {
    RunRound(pool, args, kernel, scratch);
  }
}

void RunLeaf(const AttentionArgs& args, const LeafKernel& kernel,
             const float* query_row, int64_t position, const PageRuns& page,
             PartialView result, float* weights) {
  struct Scratch {
    std::vector<std::byte> query;
    std::vector<LeafQuery> queries;
    DenseRows dense;
    LeafRows rows;
    LeafPage page;
  };
  Scratch& scratch = ThreadScratch<Scratch>();
  const size_t dim = static_cast<size_t>(args.geometry.head_dim);
  const size_t heads = static_cast<size_t>(args.num_query_heads);
  const int group = args.num_query_heads / args.geometry.num_kv_heads;
  std::byte* packed =
      Grow(scratch.query, heads * dim * kernel.query_element_bytes);
  kernel.pack_query(query_row, args.num_query_heads * args.geometry.head_dim,
                    packed);
  LeafQuery* queries = Grow(scratch.queries, static_cast<size_t>(group));
  scratch.dense.Set(args.geometry.VectorBytes());
  const uint64_t mask = CausalMask(page.page_index, position);
  for (int kv_head = 0; kv_head < args.geometry.num_kv_heads; ++kv_head) {
    const uint64_t live = page.live[kv_head] & mask;
    CollectRows(
        scratch.dense,
        live == 0 ? page : scratch.page.Read(args.geometry, page, kv_head),
        kv_head, live, scratch.rows);
    for (int g = 0; g < group; ++g) {
      const size_t head = static_cast<size_t>(kv_head * group + g);
      queries[g] = {.query = packed + head * dim * kernel.query_element_bytes,
                    .m = result.m + head,
                    .l = result.l + head,
                    .out = result.out + head * dim,
                    .weights = weights == nullptr
                                   ? nullptr
                                   : weights + head * kPageTokens};
    }
    RunLeafCall(kernel, {.rows = &scratch.rows,
                         .queries = queries,
                         .num_queries = group,
                         .head_dim = args.geometry.head_dim,
                         .scale = args.scale});
  }
}

void Attention(Stream& stream, const AttentionArgs& args) {
  stream.Enqueue([args](ThreadPool& pool) {
    RunAttention(pool, args, ChooseLeafKernel(args.geometry.dtype));
  });
}

void AttentionLeaf(const AttentionArgs& args, const float* query_row,
                   int64_t position, const PageRuns& page, PartialView result,
                   float* weights) {
  RunLeaf(args, ChooseLeafKernel(args.geometry.dtype), query_row, position,
          page, result, weights);
}

void AddLeafScores(const AttentionArgs& args, const float* weights,
                   const float* m_leaf, const float* m, const float* l,
                   int64_t* page_scores) {
  AddPageScores(ScoreCall(args, weights, m_leaf, m, l), page_scores);
}

}  // namespace farkv

// AttentionSubtrees: the units of attention_plan.h, each a complete subtree,
// handed out instead of merged to the root.
#include "kernels/attention_round.h"

namespace farkv {
namespace {

// Units cut for the sake of threads come together here; what is left are the
// maximal subtrees.
void SendSubtrees(const AttentionCall& call, const RowBlock& block,
                  size_t first_split, const SubtreeSink& sink) {
  const int heads = call.args->num_query_heads;
  const int dim = call.args->geometry.head_dim;
  AttentionTree& tree = ThreadScratch<AttentionTree>();
  tree.Reset(heads, dim, AttentionTree::Gaps::kElsewhere, block.num_splits);
  for (int split = 0; split < block.num_splits; ++split) {
    CopyPartials(
        heads, dim, call.Partial(block, split, 0),
        tree.Begin(
            call.round->splits[first_split + static_cast<size_t>(split)]));
  }
  const int count = tree.NumSubtrees();
  for (int i = 0; i < count; ++i) {
    sink.subtree(block.sequence, tree.subtree(i), tree.partials(i));
  }
}

void SendLeaves(const AttentionCall& call, const RowBlock& block,
                const SubtreeSink& sink) {
  if (sink.leaf == nullptr) return;
  for (int page = 0; page < block.num_pages; ++page) {
    const size_t leaf = call.LeafOf(block, 0, page);
    sink.leaf(block.sequence, page,
              call.weights + leaf * call.heads() * kPageTokens,
              call.leaf_m + leaf * call.heads());
  }
}

}  // namespace

void RunSubtrees(ThreadPool& pool, const AttentionArgs& args,
                 const LeafKernel& kernel, const SubtreeSink& sink) {
  RoundScratch& scratch = ThreadScratch<RoundScratch>();
  AttentionLimits limits = scratch.Prepare(args, kernel, pool);
  limits.subtrees = true;
  limits.keep_leaves = sink.leaf != nullptr;
  AttentionCursor cursor;
  while (PlanRound(args, limits, cursor, scratch.round)) {
    const AttentionCall call = RunUnits(pool, args, kernel, scratch);
    for (size_t b = 0; b < scratch.round.blocks.size(); ++b) {
      const RowBlock& block = scratch.round.blocks[b];
      SendSubtrees(call, block, scratch.round.first_split[b], sink);
      SendLeaves(call, block, sink);
    }
  }
}

void AttentionSubtrees(ThreadPool& pool, const AttentionArgs& args,
                       const SubtreeSink& sink) {
  RunSubtrees(pool, args, ChooseLeafKernel(args.geometry.dtype), sink);
}

}  // namespace farkv

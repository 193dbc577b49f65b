#include "kernels/attention_round.h"

#include <algorithm>

namespace farkv {
namespace {

// Scratch of a round: 16 MiB of partials, 32 MiB of weights, or one row block.
constexpr size_t kPartialFloats = size_t{4} << 20;
constexpr size_t kWeightFloats = size_t{8} << 20;

size_t NumRows(const AttentionArgs& args) {
  size_t rows = 0;
  for (const AttentionSequence& sequence : args.sequences) {
    rows = std::max(rows, static_cast<size_t>(sequence.first_row) +
                              static_cast<size_t>(sequence.num_rows));
  }
  return rows;
}

void ListRows(const AttentionRound& round, std::vector<RowOfBlock>& rows) {
  rows.clear();
  for (size_t b = 0; b < round.blocks.size(); ++b) {
    for (int row = 0; row < round.blocks[b].num_rows; ++row) {
      rows.push_back({static_cast<int>(b), row});
    }
  }
}

void PackRows(const AttentionCall& call, ThreadPool& pool,
              const std::vector<RowOfBlock>& rows) {
  const int count = call.args->num_query_heads * call.args->geometry.head_dim;
  pool.ParallelFor(static_cast<int64_t>(rows.size()), [&](int64_t i) {
    const RowOfBlock& item = rows[static_cast<size_t>(i)];
    const RowBlock& block = call.round->blocks[static_cast<size_t>(item.block)];
    const size_t row = call.RowOf(block, item.row);
    call.kernel->pack_query(
        call.args->queries + row * static_cast<size_t>(count), count,
        call.QueryOf(row, 0));
  });
}

}  // namespace

AttentionLimits RoundScratch::Prepare(const AttentionArgs& args,
                                      const LeafKernel& kernel,
                                      const ThreadPool& pool) {
  const size_t heads = static_cast<size_t>(args.num_query_heads);
  const size_t dim = static_cast<size_t>(args.geometry.head_dim);
  Grow(queries, NumRows(args) * heads * dim * kernel.query_element_bytes);
  AttentionLimits limits;
  limits.num_threads = pool.num_threads();
  limits.max_partials = kPartialFloats / (heads * (dim + 2));
  limits.max_leaves = kWeightFloats / (heads * kPageTokens);
  return limits;
}

AttentionCall RunUnits(ThreadPool& pool, const AttentionArgs& args,
                       const LeafKernel& kernel, RoundScratch& scratch) {
  const AttentionRound& round = scratch.round;
  AttentionCall call;
  call.args = &args;
  call.kernel = &kernel;
  call.round = &round;
  const size_t heads = call.heads();
  call.partials = Grow(scratch.partials,
                       round.num_partials * heads * (call.head_dim() + 2));
  call.weights = Grow(scratch.weights, round.num_leaves * heads * kPageTokens);
  call.leaf_m = Grow(scratch.leaf_m, round.num_leaves * heads);
  call.queries = scratch.queries.data();
  ListRows(round, scratch.rows);
  PackRows(call, pool, scratch.rows);
  pool.ParallelFor(static_cast<int64_t>(round.units.size()), [&](int64_t i) {
    RunUnit(call, round.units[static_cast<size_t>(i)]);
  });
  return call;
}

}  // namespace farkv

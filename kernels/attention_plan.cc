#include "kernels/attention_plan.h"

#include <algorithm>

namespace farkv {
namespace {

// Queries of one KV head that a row block should offer a leaf.
constexpr int kQueriesPerLeaf = 32;
// Units per thread, so that threads finish together.
constexpr int64_t kUnitsPerThread = 4;
// A page range below this is not worth its own tree.
constexpr int64_t kMinPagesPerUnit = 4;

int RowsPerBlock(const AttentionArgs& args) {
  const int group = args.num_query_heads / args.geometry.num_kv_heads;
  return std::max(1, kQueriesPerLeaf / group);
}

int VisiblePages(const AttentionSequence& sequence, int last_row) {
  const int64_t position = sequence.first_position + last_row;
  const auto end = std::partition_point(
      sequence.pages.begin(), sequence.pages.end(), [&](const PageRuns& page) {
        return static_cast<int64_t>(page.page_index) * kPageTokens <= position;
      });
  return static_cast<int>(end - sequence.pages.begin());
}

// A measure of the whole call's work: row blocks times pages.
int64_t TotalPages(const AttentionArgs& args) {
  const int rows = RowsPerBlock(args);
  int64_t total = 0;
  for (const AttentionSequence& sequence : args.sequences) {
    const int64_t blocks = (sequence.num_rows + rows - 1) / rows;
    total += blocks * static_cast<int64_t>(sequence.pages.size());
  }
  return total;
}

int64_t NumRanges(std::span<const PageRuns> pages, int level) {
  return (pages.back().page_index >> level) -
         (pages.front().page_index >> level) + 1;
}

// The level whose aligned ranges cut `pages` into about `wanted` pieces.
int SplitLevel(std::span<const PageRuns> pages, int64_t wanted) {
  int level = AttentionTree::kRootLevel;
  while (NumRanges(pages, level) < wanted &&
         (int64_t{1} << (level - 1)) >= kMinPagesPerUnit) {
    --level;
  }
  return level;
}

// The largest aligned subtree, of at most `cap` levels, that starts with
// pages[first] and has all its pages.
SubtreeId CompleteSubtree(std::span<const PageRuns> pages, int first, int cap) {
  const int32_t index = pages[static_cast<size_t>(first)].page_index;
  SubtreeId subtree{0, index};
  while (subtree.level < cap && (subtree.index & 1) == 0) {
    const int64_t last = first + (int64_t{2} << subtree.level) - 1;
    if (last >= static_cast<int64_t>(pages.size()) ||
        pages[static_cast<size_t>(last)].page_index !=
            subtree.Parent().end() - 1) {
      break;
    }
    subtree = subtree.Parent();
  }
  return subtree;
}

// Appends the units of one split, cut into `pieces` ranges of KV heads.
void AddUnits(AttentionUnit unit, int num_kv_heads, int pieces,
              AttentionRound& round) {
  for (int i = 0; i < pieces; ++i) {
    unit.first_head = num_kv_heads * i / pieces;
    unit.num_heads = num_kv_heads * (i + 1) / pieces - unit.first_head;
    round.units.push_back(unit);
  }
}

void AddBlock(const AttentionArgs& args, RowBlock block, int64_t wanted,
              bool complete, AttentionRound& round) {
  const AttentionSequence& sequence =
      args.sequences[static_cast<size_t>(block.sequence)];
  const auto pages = sequence.pages.first(static_cast<size_t>(block.num_pages));
  const int num_kv_heads = args.geometry.num_kv_heads;
  round.first_split.push_back(round.splits.size());
  const size_t first_split = round.splits.size();
  // One row passes over a page's heads in storage order; several rows stay
  // with one head, whose page then is in the cache for all of them.
  const int level = block.num_rows == 1 && !pages.empty()
                        ? SplitLevel(pages, wanted)
                        : AttentionTree::kRootLevel;
  const int64_t ranges = pages.empty() ? 1 : NumRanges(pages, level);
  const int64_t pieces =
      block.num_rows > 1 ? num_kv_heads : (wanted + ranges - 1) / ranges;
  const int head_pieces =
      static_cast<int>(std::clamp<int64_t>(pieces, 1, num_kv_heads));
  for (int page = 0; page < block.num_pages;) {
    AttentionUnit unit;
    unit.block = static_cast<int>(round.blocks.size());
    unit.split = static_cast<int>(round.splits.size() - first_split);
    unit.first_page = page;
    unit.subtree =
        complete
            ? CompleteSubtree(pages, page, level)
            : SubtreeId{level,
                        pages[static_cast<size_t>(page)].page_index >> level};
    while (page < block.num_pages &&
           pages[static_cast<size_t>(page)].page_index < unit.subtree.end()) {
      ++page;
    }
    unit.num_pages = page - unit.first_page;
    round.splits.push_back(unit.subtree);
    AddUnits(unit, num_kv_heads, head_pieces, round);
  }
  block.num_splits = static_cast<int>(round.splits.size() - first_split);
  block.first_partial = round.num_partials;
  // A row that sees no page still needs a partial to be empty.
  const size_t rows = static_cast<size_t>(block.num_rows);
  round.num_partials +=
      rows * static_cast<size_t>(std::max(1, block.num_splits));
  if (block.scored) {
    block.first_leaf = round.num_leaves;
    round.num_leaves += rows * static_cast<size_t>(block.num_pages);
  }
  round.blocks.push_back(block);
}

bool Full(const AttentionRound& round, const RowBlock& block,
          const AttentionLimits& limits) {
  if (round.blocks.empty()) return false;
  const size_t rows = static_cast<size_t>(block.num_rows);
  const size_t leaves =
      block.scored ? rows * static_cast<size_t>(block.num_pages) : 0;
  return round.num_partials + rows > limits.max_partials ||
         round.num_leaves + leaves > limits.max_leaves;
}

}  // namespace

bool PlanRound(const AttentionArgs& args, const AttentionLimits& limits,
               AttentionCursor& cursor, AttentionRound& round) {
  round = {.blocks = std::move(round.blocks),
           .units = std::move(round.units),
           .splits = std::move(round.splits),
           .first_split = std::move(round.first_split)};
  round.blocks.clear();
  round.units.clear();
  round.splits.clear();
  round.first_split.clear();
  const int64_t total = std::max<int64_t>(1, TotalPages(args));
  const int rows = RowsPerBlock(args);
  while (cursor.sequence < args.sequences.size()) {
    const AttentionSequence& sequence = args.sequences[cursor.sequence];
    if (cursor.row >= sequence.num_rows) {
      cursor = {cursor.sequence + 1, 0};
      continue;
    }
    RowBlock block;
    block.sequence = static_cast<int>(cursor.sequence);
    block.first_row = cursor.row;
    block.num_rows = std::min(rows, sequence.num_rows - cursor.row);
    block.num_pages =
        VisiblePages(sequence, block.first_row + block.num_rows - 1);
    block.scored = limits.keep_leaves || !sequence.scores.empty();
    if (Full(round, block, limits)) break;
    const int64_t wanted =
        limits.num_threads == 1
            ? 1
            : (limits.num_threads * kUnitsPerThread * block.num_pages + total -
               1) /
                  total;
    AddBlock(args, block, wanted,
             limits.subtrees || sequence.elsewhere != nullptr, round);
    cursor.row += block.num_rows;
  }
  return !round.blocks.empty();
}

}  // namespace farkv

// The work of one thread: leaves of a range of pages and KV heads, merged
// along the tree, with each leaf's successor handed over for prefetching.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/attention_call.h"
#include "kernels/attention_t2.h"

namespace farkv {
namespace {

// Rows are prefetched for the leaf after the next one; farther was no faster.
constexpr int kAhead = 2;

// Kept by each thread and only growing, so that nothing is allocated per leaf.
struct UnitScratch {
  AttentionTree tree;
  DenseRows dense;
  std::array<LeafRows, kAhead + 1> rows;  // a ring: this leaf and those to come
  std::array<LeafPage, kAhead + 1> pages;  // likewise
  LeafRows edge;
  std::vector<LeafQuery> queries;
};

UnitScratch& Scratch() {
  static thread_local UnitScratch scratch;
  return scratch;
}

// Walks the leaves of one unit, page by page and head by head.
class UnitWalk {
 public:
  UnitWalk(const AttentionCall& call, const AttentionUnit& unit,
           UnitScratch& scratch)
      : call_(call),
        unit_(unit),
        block_(call.BlockOf(unit)),
        scratch_(scratch),
        pages_(call.SequenceOf(block_).pages),
        group_(call.group()),
        first_position_(call.PositionOf(block_, 0)),
        last_position_(call.PositionOf(block_, block_.num_rows - 1)) {}

  void Run();

 private:
  int NumLeaves() const { return unit_.num_pages * unit_.num_heads; }
  LeafRows& RowsOf(int leaf) {
    return scratch_.rows[static_cast<size_t>(leaf % (kAhead + 1))];
  }
  int FlatHeads() const { return block_.num_rows * unit_.num_heads * group_; }
  // Index of query head g of KV head h (counted within the unit) of a row.
  size_t Flat(int row, int h, int g) const {
    return static_cast<size_t>((row * unit_.num_heads + h) * group_ + g);
  }
  const PageRuns& Page(int page) const {
    return pages_[static_cast<size_t>(page)];
  }
  LeafPage& PageOf(int leaf) {
    return scratch_.pages[static_cast<size_t>(leaf % (kAhead + 1))];
  }
  // Rows of a page that the query row at `position` sees.
  void Collect(int leaf, int64_t position, LeafRows& rows) {
    const PageRuns& page = Page(unit_.first_page + leaf / unit_.num_heads);
    const int head = unit_.first_head + leaf % unit_.num_heads;
    const uint64_t live =
        page.live[head] & CausalMask(page.page_index, position);
    CollectRows(
        scratch_.dense,
        live == 0 ? page : PageOf(leaf).Read(call_.args->geometry, page, head),
        head, live, rows);
  }
  void FillQueries(int page, int h, PartialView view);
  void RunPageHead(int page, int h, PartialView view, const LeafRows& rows,
                   int step);
  void RunEdge(int leaf, const LeafCall& all);
  void Aim(int step, LeafCall& call);
  void CollectLeaf(int leaf);
  void KeepMaxima(int page, PartialView view);
  void StoreRoot(PartialView root);

  const AttentionCall& call_;
  const AttentionUnit& unit_;
  const RowBlock& block_;
  UnitScratch& scratch_;
  std::span<const PageRuns> pages_;
  const int group_;
  const int64_t first_position_;
  const int64_t last_position_;
};

void UnitWalk::FillQueries(int page, int h, PartialView view) {
  const size_t dim = call_.head_dim();
  const size_t first =
      static_cast<size_t>((unit_.first_head + h) * group_);  // query head
  LeafQuery* query = scratch_.queries.data();
  for (int row = 0; row < block_.num_rows; ++row) {
    const size_t call_row = call_.RowOf(block_, row);
    float* weights = nullptr;
    if (block_.scored) {
      const size_t leaf = call_.LeafOf(block_, row, page);
      weights = call_.weights + (leaf * call_.heads() + first) * kPageTokens;
    }
    for (int g = 0; g < group_; ++g, ++query) {
      const size_t flat = Flat(row, h, g);
      query->query = call_.QueryOf(call_row, first + static_cast<size_t>(g));
      query->m = view.m + flat;
      query->l = view.l + flat;
      query->out = view.out + flat * dim;
      query->weights = weights == nullptr ? nullptr : weights + g * kPageTokens;
    }
  }
}

// A page that ends behind the first row's position: each row sees its own
// part, so each has its own leaf.
void UnitWalk::RunEdge(int leaf, const LeafCall& all) {
  LeafCall call = all;
  call.num_queries = group_;
  call.rows = &scratch_.edge;
  for (int row = 0; row < block_.num_rows; ++row) {
    Collect(leaf, first_position_ + row, scratch_.edge);
    RunLeafCall(*call_.kernel, call);
    call.queries += group_;
    call.next = nullptr;
  }
}

void UnitWalk::RunPageHead(int page, int h, PartialView view,
                           const LeafRows& rows, int step) {
  FillQueries(page, h, view);
  LeafCall call;
  call.rows = &rows;
  Aim(step, call);
  call.queries = scratch_.queries.data();
  call.num_queries = block_.num_rows * group_;
  call.head_dim = call_.args->geometry.head_dim;
  call.scale = call_.args->scale;
  const int64_t last =
      static_cast<int64_t>(Page(page).page_index) * kPageTokens + kPageTokens -
      1;
  if (block_.num_rows > 1 && last > first_position_) {
    RunEdge(step, call);
  } else {
    RunLeafCall(*call_.kernel, call);
  }
}

// The scores need each leaf's m, which merging overwrites.
void UnitWalk::KeepMaxima(int page, PartialView view) {
  const size_t first = static_cast<size_t>(unit_.first_head * group_);
  const int count = unit_.num_heads * group_;
  for (int row = 0; row < block_.num_rows; ++row) {
    const size_t leaf = call_.LeafOf(block_, row, page);
    std::copy_n(view.m + Flat(row, 0, 0), count,
                call_.leaf_m + leaf * call_.heads() + first);
  }
}

void UnitWalk::StoreRoot(PartialView root) {
  const size_t dim = call_.head_dim();
  const size_t first = static_cast<size_t>(unit_.first_head * group_);
  for (int row = 0; row < block_.num_rows; ++row) {
    const size_t flat = Flat(row, 0, 0);
    const PartialView to = call_.Partial(block_, unit_.split, row);
    CopyPartials(
        unit_.num_heads * group_, static_cast<int>(dim),
        {.m = root.m + flat, .l = root.l + flat, .out = root.out + flat * dim},
        {.m = to.m + first, .l = to.l + first, .out = to.out + first * dim});
  }
}

// Leaves are numbered page by page; past the last one there is nothing to
// prefetch, and a leaf without rows is not prefetched.
void UnitWalk::Aim(int step, LeafCall& call) {
  const int last = NumLeaves() - 1;
  const LeafRows& next = RowsOf(std::min(step + 1, last));
  const LeafRows& ahead = RowsOf(std::min(step + kAhead, last));
  if (step == last || next.count == 0 || ahead.count == 0) return;
  call.next = &next;
  call.ahead = &ahead;
}

void UnitWalk::CollectLeaf(int leaf) {
  if (leaf >= NumLeaves()) return;
  Collect(leaf, last_position_, RowsOf(leaf));
}

void UnitWalk::Run() {
  const size_t queries = static_cast<size_t>(block_.num_rows * group_);
  if (scratch_.queries.size() < queries) scratch_.queries.resize(queries);
  scratch_.dense.Set(call_.args->geometry.VectorBytes());
  scratch_.tree.Reset(FlatHeads(), call_.args->geometry.head_dim,
                      AttentionTree::Gaps::kAbsent);
  for (int leaf = 0; leaf < kAhead; ++leaf) CollectLeaf(leaf);
  int leaf = 0;
  for (int i = 0; i < unit_.num_pages; ++i) {
    const int page = unit_.first_page + i;
    const PartialView view = scratch_.tree.Begin({0, Page(page).page_index});
    for (int h = 0; h < unit_.num_heads; ++h, ++leaf) {
      CollectLeaf(leaf + kAhead);
      RunPageHead(page, h, view, RowsOf(leaf), leaf);
    }
    if (block_.scored) KeepMaxima(page, view);
  }
  StoreRoot(scratch_.tree.Root());
}

}  // namespace

void RunLeafCall(const LeafKernel& kernel, const LeafCall& call) {
  if (call.rows->count > 0) {
    kernel.leaf(call);
    return;
  }
  for (int q = 0; q < call.num_queries; ++q) {
    const LeafQuery& query = call.queries[q];
    ClearPartials(1, call.head_dim,
                  {.m = query.m, .l = query.l, .out = query.out});
    if (query.weights != nullptr) {
      std::fill_n(query.weights, kPageTokens, 0.0f);
    }
  }
}

void RunUnit(const AttentionCall& call, const AttentionUnit& unit) {
  UnitWalk(call, unit, Scratch()).Run();
}

}  // namespace farkv

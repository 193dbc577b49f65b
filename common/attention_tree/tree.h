// The fixed aligned binary tree over page indices along which leaves merge.
//
// Node (level, index) covers the pages [index << level, (index + 1) << level);
// a leaf has level 0. A node's partial is the merge of its two children; an
// absent child leaves its sibling unchanged. So any party may compute any
// aligned subtree, and whoever holds the subtrees gets the bits of one party
// that computed all leaves (DESIGN 3).
//
// AttentionTree takes leaves or whole subtrees in ascending order and merges
// as soon as both sides of a node are final. Thread-compatible.
#ifndef FARKV_COMMON_ATTENTION_TREE_TREE_H_
#define FARKV_COMMON_ATTENTION_TREE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/attention_tree/merge.h"

namespace farkv {

struct SubtreeId {
  int32_t level = 0;
  int32_t index = 0;

  friend bool operator==(const SubtreeId&, const SubtreeId&) = default;

  // First page covered, and one past the last.
  int64_t begin() const { return static_cast<int64_t>(index) << level; }
  int64_t end() const { return (static_cast<int64_t>(index) + 1) << level; }
  SubtreeId Parent() const { return {level + 1, index >> 1}; }
};

class AttentionTree {
 public:
  // What a page index that is never added means: nobody has it, so a sibling
  // moves up alone and Root() is the whole result; or another party has it, so
  // only complete siblings merge and the result is a list of subtrees.
  enum class Gaps { kAbsent, kElsewhere };

  // The root of all pages that an int32 can name.
  static constexpr int32_t kRootLevel = 31;

  // Empties the tree for partials of num_heads query heads. Storage is kept
  // and only grows: it holds kRootLevel + 2 partials with kAbsent, and
  // max_subtrees + 1 with kElsewhere (the number of pages always suffices).
  void Reset(int num_heads, int head_dim, Gaps gaps, int max_subtrees = 0);

  // Makes room for subtree `id` and returns where to write its partials,
  // before any other non-const call. Ids must ascend and be disjoint; the
  // caller is trusted.
  PartialView Begin(SubtreeId id);

  // Copies and adds a subtree that someone else computed. INVALID_ARGUMENT
  // when `id` is not behind everything added so far, RESOURCE_EXHAUSTED when
  // there is no storage for one more standing subtree; nothing is added then.
  absl::Status Add(SubtreeId id, PartialView partials);

  // kAbsent: merges what stands into the root and returns it, empty when
  // nothing was added. Ends the additions until the next Reset().
  PartialView Root();

  // kElsewhere: merges what stands into the maximal subtrees all of whose
  // pages were added, and returns their number; ascending.
  int NumSubtrees();
  SubtreeId subtree(int i) const { return stack_[static_cast<size_t>(i)]; }
  PartialView partials(int i);

 private:
  PartialView Slot(size_t i);
  // Merges whatever is final, given that the next addition starts at page
  // `next`.
  void Settle(int64_t next);
  void LiftThroughGaps(int64_t next);
  void MergeTopTwo();
  bool TopTwoAreSiblings() const;

  int num_heads_ = 0;
  int head_dim_ = 0;
  Gaps gaps_ = Gaps::kAbsent;
  size_t stride_ = 0;    // floats from one partial to the next
  size_t capacity_ = 0;  // partials, the one being written included
  std::vector<SubtreeId> stack_;
  struct Free {
    void operator()(float* storage) const;
  };
  size_t storage_floats_ = 0;
  std::unique_ptr<float[], Free> storage_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ATTENTION_TREE_TREE_H_

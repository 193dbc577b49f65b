#include "common/attention_tree/tree.h"

#include <cassert>
#include <new>

#include "absl/strings/str_format.h"

namespace farkv {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void AttentionTree::Reset(int num_heads, int head_dim, Gaps gaps,
                          int max_subtrees) {
  num_heads_ = num_heads;
  head_dim_ = head_dim;
  gaps_ = gaps;
  // 64-byte steps keep a partial's vectors from straddling two.
  const size_t heads = static_cast<size_t>(num_heads);
  const size_t wanted = heads * static_cast<size_t>(head_dim + 2);
  stride_ = (wanted + 15) / 16 * 16;
  capacity_ = static_cast<size_t>(gaps == Gaps::kAbsent ? kRootLevel + 2
                                                        : max_subtrees + 1);
  stack_.clear();
  stack_.reserve(capacity_);
  const size_t floats = stride_ * capacity_;
  if (storage_floats_ < floats) {
    storage_.reset(new (kAlignment) float[floats]);
    storage_floats_ = floats;
  }
}

void AttentionTree::Free::operator()(float* storage) const {
  ::operator delete[](storage, kAlignment);
}

PartialView AttentionTree::Slot(size_t i) {
  float* base = storage_.get() + i * stride_;
  const size_t heads = static_cast<size_t>(num_heads_);
  const size_t out = heads * static_cast<size_t>(head_dim_);
  return {.m = base + out, .l = base + out + heads, .out = base};
}

PartialView AttentionTree::partials(int i) {
  return Slot(static_cast<size_t>(i));
}

bool AttentionTree::TopTwoAreSiblings() const {
  const size_t count = stack_.size();
  return count > 1 && (stack_.back().index & 1) == 1 &&
         stack_[count - 2].Parent() == stack_.back().Parent();
}

void AttentionTree::MergeTopTwo() {
  const size_t right = stack_.size() - 1;
  MergePartials(num_heads_, head_dim_, Slot(right - 1), Slot(right));
  stack_.pop_back();
  stack_.back() = stack_.back().Parent();
}

// Each standing subtree is a left child whose sibling covers all that follows
// it, except the last one, which this brings into that form.
void AttentionTree::LiftThroughGaps(int64_t next) {
  while (stack_.back().level < kRootLevel) {
    SubtreeId& top = stack_.back();
    if ((top.index & 1) == 0 && next < top.Parent().end()) return;
    if (TopTwoAreSiblings()) {
      MergeTopTwo();
    } else {
      top = top.Parent();  // the sibling is absent
    }
  }
}

void AttentionTree::Settle(int64_t next) {
  if (stack_.empty()) return;
  if (gaps_ == Gaps::kAbsent) {
    LiftThroughGaps(next);
  } else {
    while (TopTwoAreSiblings()) MergeTopTwo();
  }
}

PartialView AttentionTree::Begin(SubtreeId id) {
  assert(stack_.empty() || stack_.back().end() <= id.begin());
  Settle(id.begin());
  assert(stack_.size() < capacity_);
  stack_.push_back(id);
  return Slot(stack_.size() - 1);
}

absl::Status AttentionTree::Add(SubtreeId id, PartialView partials) {
  if (id.level < 0 || id.level > kRootLevel || id.index < 0 ||
      id.end() > int64_t{1} << kRootLevel) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "subtree (level %d, index %d) is outside of the tree of %d levels",
        id.level, id.index, kRootLevel));
  }
  if (!stack_.empty() && id.begin() < stack_.back().end()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "subtree (level %d, index %d) starts at page %d, but pages up to %d "
        "were added before",
        id.level, id.index, id.begin(), stack_.back().end()));
  }
  Settle(id.begin());
  if (stack_.size() >= capacity_) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d subtrees stand, as many as there is room for", stack_.size()));
  }
  CopyPartials(num_heads_, head_dim_, partials, Begin(id));
  return absl::OkStatus();
}

int AttentionTree::NumSubtrees() {
  assert(gaps_ == Gaps::kElsewhere);
  Settle(0);
  return static_cast<int>(stack_.size());
}

PartialView AttentionTree::Root() {
  assert(gaps_ == Gaps::kAbsent);
  if (stack_.empty()) {
    ClearPartials(num_heads_, head_dim_, Slot(0));
  } else {
    Settle(int64_t{1} << kRootLevel);
  }
  return Slot(0);
}

}  // namespace farkv

// The loop of byte-pair encoding: neighbours in a row of symbols are merged,
// the best pair of all first, the leftmost among equals, until no pair is
// left. O(n log n) for n symbols. Private to the models of this room.
#ifndef FARKV_GPU_WORKER_TOKENIZER_MERGE_LIST_H_
#define FARKV_GPU_WORKER_TOKENIZER_MERGE_LIST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace farkv {

// What merging two neighbours makes.
struct Merged {
  double cost = 0;  // lower merges first
  int32_t id = -1;  // of the new symbol
};

class MergeList {
 public:
  struct Symbol {
    int32_t id = 0;
    // Bytes of the text; an absorbed symbol has none.
    uint32_t begin = 0, end = 0;
    int32_t previous = -1, next = -1;
  };

  void Clear() {
    symbols_.clear();
    heap_.clear();
  }
  void Push(int32_t id, uint32_t begin, uint32_t end) {
    const auto at = static_cast<int32_t>(symbols_.size());
    if (at > 0) symbols_.back().next = at;
    symbols_.push_back({id, begin, end, at - 1, -1});
  }

  // merge(left, right, &merged) says whether two symbols merge, and to what.
  template <typename Merge>
  void Run(const Merge& merge) {
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) {
      Offer(static_cast<int32_t>(i), merge);
    }
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate best = heap_.back();
      heap_.pop_back();
      Symbol& left = At(best.left);
      // Out of date when either side has been merged since.
      if (left.end == left.begin || left.next < 0 ||
          left.end - left.begin != best.left_bytes ||
          At(left.next).end - left.begin != best.bytes) {
        continue;
      }
      Absorb(left, best.id);
      if (left.previous >= 0) Offer(left.previous, merge);
      if (left.next >= 0) Offer(best.left, merge);
    }
  }

  // In order; those that were absorbed are empty and to be skipped.
  const std::vector<Symbol>& symbols() const { return symbols_; }

 private:
  struct Candidate {
    double cost;
    int32_t left;
    int32_t id;
    uint32_t left_bytes, bytes;

    bool operator<(const Candidate& other) const {  // std heaps: best is last
      return cost != other.cost ? cost > other.cost : left > other.left;
    }
  };

  Symbol& At(int32_t index) { return symbols_[static_cast<size_t>(index)]; }

  template <typename Merge>
  void Offer(int32_t index, const Merge& merge) {
    const Symbol& left = At(index);
    const Symbol& right = At(left.next);
    Merged merged;
    if (!merge(left, right, &merged)) return;
    heap_.push_back({merged.cost, index, merged.id, left.end - left.begin,
                     right.end - left.begin});
    std::push_heap(heap_.begin(), heap_.end());
  }

  void Absorb(Symbol& left, int32_t id) {
    Symbol& right = At(left.next);
    left.id = id;
    left.end = right.end;
    left.next = right.next;
    right.begin = right.end;
    if (left.next >= 0) At(left.next).previous = right.previous;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_MERGE_LIST_H_

// What Attention() and AttentionSubtrees() share: the scratch of a round and
// the work up to the partials of its units (attention_plan.h). Internal to
// kernels/.
//
// Scratch belongs to threads: the one that runs the operation holds the
// round's partials and weights, each thread that works on a unit its tree and
// row lists. It grows to the largest call and is kept, so a decode step
// allocates nothing. Calls on different threads share nothing.
#ifndef FARKV_KERNELS_ATTENTION_ROUND_H_
#define FARKV_KERNELS_ATTENTION_ROUND_H_

#include <cstddef>
#include <vector>

#include "common/base/thread_pool.h"
#include "kernels/attention_call.h"

namespace farkv {

struct RowOfBlock {
  int block;
  int row;
};

struct RoundScratch {
  AttentionRound round;
  std::vector<float> partials;
  std::vector<float> weights;
  std::vector<float> leaf_m;
  std::vector<std::byte> queries;
  std::vector<RowOfBlock> rows;

  // Makes room for the call's queries; returns the bounds of its rounds.
  AttentionLimits Prepare(const AttentionArgs& args, const LeafKernel& kernel,
                          const ThreadPool& pool);
};

template <class T>
T& ThreadScratch() {
  static thread_local T scratch;
  return scratch;
}

template <class T>
T* Grow(std::vector<T>& storage, size_t size) {
  if (storage.size() < size) storage.resize(size);
  return storage.data();
}

// Runs all units of `scratch.round`. The result borrows from the arguments.
AttentionCall RunUnits(ThreadPool& pool, const AttentionArgs& args,
                       const LeafKernel& kernel, RoundScratch& scratch);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_ROUND_H_

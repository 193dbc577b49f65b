// Rows that are lost are given up, to be computed again (lost_rows.h).
#include <vector>

#include "gpu_worker/tiering/kv_cache_impl.h"
#include "gpu_worker/tiering/lost_rows.h"

namespace farkv {

std::vector<int64_t> KvCache::Impl::GiveUpLostRows(SequenceId id) {
  Discard();
  Sequence* sequence = Find(id);
  if (sequence == nullptr || remote == nullptr) return {};
  remote->Poll(sequences, lines);
  if (!MayRecomputeLostRows(*sequence, options.t2_ratio)) return {};
  std::vector<bool> healthy;
  for (const auto& link : remote->links()) healthy.push_back(link->healthy());
  std::vector<int64_t> lost = FindLostPositions(*sequence, healthy);
  const int64_t tokens = sequence->table.num_tokens();
  if (lost.empty() || static_cast<int64_t>(lost.size()) == tokens) return {};
  if (!pushdown->CollectAllScores(*sequence)) return {};
  sequence->reads = SequenceReads();
  sequence->promotion = SequencePromotion();
  remote->GiveUp(*sequence, lost);
  sequence->loss = SequenceLoss();
  sequence->loss.positions = lost;
  return lost;
}

std::vector<int64_t> KvCache::GiveUpLostRows(SequenceId id) {
  return impl_->GiveUpLostRows(id);
}

}  // namespace farkv

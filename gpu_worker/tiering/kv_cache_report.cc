// What the cache says about itself: statistics, tier maps, peers.
#include <bit>

#include "gpu_worker/tiering/kv_cache_impl.h"

namespace farkv {
namespace {

const RemotePage& RemotePageOf(const Sequence& sequence, int page_index) {
  return sequence.remote.pages[static_cast<size_t>(page_index)];
}

}  // namespace

SequenceTierStats KvCache::Stats(SequenceId id) const {
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return {};
  SequenceTierStats stats = sequence->stats;
  for (size_t i = 0; i < sequence->reads_by_node.size(); ++i) {
    const std::string& node = impl_->remote->links()[i]->node_id();
    stats.cold_rows_by_node[node] = sequence->reads_by_node[i];
  }
  for (int i = 0; i < sequence->table.num_pages(); ++i) {
    const Page& page = sequence->table.page(i);
    stats.t0_tokens += std::popcount(page.alive & page.resident);
    stats.t3_tokens += std::popcount(page.written & ~page.alive);
    const bool t2 = page.cold() != 0 && RemotePageOf(*sequence, i).is_t2();
    (t2 ? stats.t2_tokens : stats.t1_tokens) += std::popcount(page.cold());
    // A page becomes T2 when none of its rows is in T0.
    if (page.state == StoreState::kStored &&
        RemotePageOf(*sequence, i).is_t2()) {
      stats.lossy_tokens += std::popcount(page.alive & page.resident);
    }
  }
  return stats;
}

std::vector<PageTierMap> KvCache::TierMap(SequenceId id) const {
  std::vector<PageTierMap> map;
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return map;
  for (int i = 0; i < sequence->table.num_pages(); ++i) {
    const Page& page = sequence->table.page(i);
    PageTierMap entry;
    entry.page_index = i;
    entry.stored = page.state == StoreState::kStored;
    if (entry.stored) {
      const int node = sequence->remote.pages[static_cast<size_t>(i)].node;
      entry.node_id =
          impl_->remote->links()[static_cast<size_t>(node)]->node_id();
    }
    const bool t2 = page.cold() != 0 && RemotePageOf(*sequence, i).is_t2();
    const Tier cold_tier = t2 ? Tier::kT2 : Tier::kT1;
    for (int slot = 0; slot < std::popcount(page.written); ++slot) {
      const bool alive = (page.alive >> slot & 1) != 0;
      const bool resident = (page.resident >> slot & 1) != 0;
      entry.tiers.push_back(!alive     ? Tier::kT3
                            : resident ? Tier::kT0
                                       : cold_tier);
    }
    map.push_back(std::move(entry));
  }
  return map;
}

std::vector<EvictionRecord> KvCache::Evictions(SequenceId id) const {
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return {};
  const auto& records = sequence->destruction.records;
  return {records.begin(), records.end()};
}

std::vector<LoggedEviction> KvCache::Decisions(
    const DecisionQuery& query) const {
  return impl_->decisions.List(query);
}

std::vector<PageLiveRows> KvCache::LiveRows(SequenceId id) const {
  std::vector<PageLiveRows> rows;
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return rows;
  for (int i = 0; i < sequence->table.num_pages(); ++i) {
    rows.push_back({i, sequence->table.page(i).live});
  }
  return rows;
}

std::vector<int64_t> KvCache::LivePositions(SequenceId id) const {
  std::vector<int64_t> positions;
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return positions;
  for (int i = 0; i < sequence->table.num_pages(); ++i) {
    for (uint64_t left = sequence->table.page(i).alive; left != 0;
         left &= left - 1) {
      positions.push_back(int64_t{i} * kPageTokens + std::countr_zero(left));
    }
  }
  return positions;
}

std::vector<int64_t> KvCache::Scores(SequenceId id) {
  Sequence* sequence = impl_->Find(id);
  if (sequence != nullptr && impl_->pushdown != nullptr &&
      !impl_->step.active()) {
    impl_->pushdown->CollectScores(*sequence);
  }
  return sequence == nullptr ? std::vector<int64_t>() : sequence->scores;
}

int64_t KvCache::late_layers() const {
  return impl_->reads == nullptr ? 0 : impl_->reads->late_layers();
}

int64_t KvCache::promoted_tokens() const { return impl_->promoted_tokens; }

T0Usage KvCache::t0_usage() const {
  const T0Lines& lines = impl_->lines;
  T0Usage usage;
  usage.capacity_bytes =
      static_cast<uint64_t>(lines.num_sets()) * lines.set_bytes();
  usage.used_bytes =
      static_cast<uint64_t>(lines.used_sets()) * lines.set_bytes();
  usage.line_bytes = lines.line_bytes();
  usage.staging_bytes = staging_bytes();
  return usage;
}

uint64_t KvCache::staging_bytes() const {
  return impl_->reads == nullptr ? 0 : impl_->reads->staging_bytes();
}

std::vector<PeerStats> KvCache::Peers() const {
  std::vector<PeerStats> peers;
  if (impl_->remote == nullptr) return peers;
  for (const auto& link : impl_->remote->links()) {
    peers.push_back(link->Stats());
  }
  return peers;
}

int64_t KvCache::num_tokens(SequenceId id) const {
  const Sequence* sequence = impl_->Find(id);
  return sequence == nullptr ? 0 : sequence->table.num_tokens();
}

int64_t KvCache::num_tokens_left(SequenceId id) const {
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return 0;
  return sequence->table.num_tokens() - sequence->destruction.destroyed;
}

int64_t KvCache::ShareBytesLeft(SequenceId id) const {
  const Sequence* sequence = impl_->Find(id);
  if (sequence == nullptr) return 0;
  return (sequence->share_sets - sequence->table.resident_sets()) *
         static_cast<int64_t>(impl_->lines.set_bytes());
}

}  // namespace farkv

#include "gpu_worker/tiering/lost_rows.h"

#include <algorithm>

namespace farkv {
namespace {

int PageOf(int64_t position) {
  return static_cast<int>(position / kPageTokens);
}
int SlotOf(int64_t position) {
  return static_cast<int>(position % kPageTokens);
}

bool IsLost(const Page& page, const RemotePage& remote,
            const SequenceLoss& loss, const std::vector<bool>& healthy) {
  return page.state == StoreState::kLost || remote.node < 0 ||
         !healthy[static_cast<size_t>(remote.node)] ||
         loss.nodes.contains(remote.node) || loss.pages.contains(page.index);
}

}  // namespace

bool MayRecomputeLostRows(const Sequence& sequence, int32_t worker_t2_ratio) {
  const SequenceSpec& spec = sequence.spec;
  const bool may_compress =
      std::min(worker_t2_ratio, spec.t2_ratio.value_or(worker_t2_ratio)) > 0;
  return !spec.destruction.has_value() && !may_compress &&
         spec.selection.policy == SelectionPolicy::kNone &&
         spec.compact_frequencies.empty() && !sequence.loss.is_repeated &&
         !sequence.pushdown.is_incomplete;
}

std::vector<int64_t> FindLostPositions(const Sequence& sequence,
                                       const std::vector<bool>& healthy) {
  const std::vector<int64_t>& before = sequence.loss.positions;
  std::vector<int64_t> lost;
  auto next = before.begin();
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const Page& page = sequence.table.page(i);
    uint64_t slots = 0;
    for (; next != before.end() && PageOf(*next) == i; ++next) {
      slots |= uint64_t{1} << SlotOf(*next);
    }
    if (page.cold() != 0 &&
        IsLost(page, sequence.remote.pages[static_cast<size_t>(i)],
               sequence.loss, healthy)) {
      slots |= page.cold();
    }
    for (int slot = 0; slot < kPageTokens; ++slot) {
      if ((slots >> slot & 1) == 0) continue;
      lost.push_back(int64_t{i} * kPageTokens + slot);
    }
  }
  return lost;
}

int64_t SetsForLost(const Sequence& sequence, int num_rows) {
  const std::vector<int64_t>& lost = sequence.loss.positions;
  const int g = sequence.table.granularity();
  int64_t sets = 0;
  int64_t last_group = -1;
  for (int i = 0; i < num_rows; ++i) {
    const int64_t position = lost[static_cast<size_t>(i)];
    const Page& page = sequence.table.page(PageOf(position));
    if ((page.resident >> SlotOf(position) & 1) != 0) continue;
    if (position / g != last_group) ++sets;
    last_group = position / g;
  }
  return sets;
}

std::vector<SelectedPage> LiveBefore(const PageTable& table, int64_t end,
                                     int num_kv_heads) {
  std::vector<SelectedPage> pages;
  for (int i = 0; int64_t{i} * kPageTokens < end; ++i) {
    const Page& page = table.page(i);
    const int64_t below =
        std::min<int64_t>(kPageTokens, end - int64_t{i} * kPageTokens);
    const uint64_t slots = page.alive & SlotMask(0, static_cast<int>(below));
    pages.push_back(
        {i, slots,
         std::vector<uint64_t>(static_cast<size_t>(num_kv_heads), slots)});
  }
  return pages;
}

void NoteRecomputed(Sequence& sequence, int num_rows) {
  std::vector<int64_t>& lost = sequence.loss.positions;
  const int first = PageOf(lost.front());
  const int last = PageOf(lost[static_cast<size_t>(num_rows) - 1]);
  lost.erase(lost.begin(), lost.begin() + num_rows);
  for (int i = first; i <= last; ++i) {
    Page& page = sequence.table.page(i);
    if (page.state != StoreState::kLost) continue;
    if (!lost.empty() && PageOf(lost.front()) == i) continue;
    if (page.cold() != 0) continue;  // lost anew
    page.state = StoreState::kFull;
    int& unstored = sequence.remote.first_unstored;
    unstored = std::min(unstored, i);
  }
}

}  // namespace farkv

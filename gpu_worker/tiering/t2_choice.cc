#include "gpu_worker/tiering/t2_choice.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace farkv {
namespace {

int64_t ScoreOf(const Sequence& sequence, int index) {
  const size_t first = static_cast<size_t>(index) * size_t{kPageTokens};
  int64_t sum = 0;
  for (size_t i = first;
       i < std::min(first + kPageTokens, sequence.scores.size()); ++i) {
    sum += sequence.scores[i];
  }
  return sum;
}

}  // namespace

std::vector<int> ChooseT2Pages(const Sequence& sequence, int32_t ratio) {
  int64_t outside = 0;  // tokens outside T0, by plan
  int64_t in_t2 = 0;
  std::vector<std::pair<int64_t, int>> candidates;  // score, page
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const Page& page = sequence.table.page(i);
    outside += std::popcount(page.alive & ~page.wanted);
    if (page.state != StoreState::kStored) continue;
    const RemotePage& remote = sequence.remote.pages[static_cast<size_t>(i)];
    if (remote.is_t2() || remote.moving) {
      in_t2 += std::popcount(page.alive);
    } else if (page.wanted == 0) {
      candidates.emplace_back(ScoreOf(sequence, i), i);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  const int64_t room = (ShareOf(ratio, outside) - in_t2) / int64_t{kPageTokens};
  const auto count =
      std::clamp<int64_t>(room, 0, static_cast<int64_t>(candidates.size()));
  std::vector<int> chosen;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    chosen.push_back(candidates[i].second);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace farkv

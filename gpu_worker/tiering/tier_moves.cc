#include "gpu_worker/tiering/tier_moves.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/policy/placement.h"
#include "gpu_worker/tiering/eviction_decision.h"
#include "kernels/elementwise.h"

namespace farkv {
namespace {

// Bound on the rows of one sequence's promotions under way, all layers.
constexpr uint64_t kPromotionBytes = uint64_t{16} << 20;
constexpr absl::Duration kPromotionRetry = absl::Seconds(1);

// Rows of a node that is lost may have no other copy than the one in T0.
bool MayDrop(const Sequence& sequence, const Page& page) {
  return page.state == StoreState::kStored &&
         sequence.remote.Answers(page.index);
}

void DropGroups(Sequence& sequence, Page& page, uint64_t keep, T0Lines& lines) {
  if (!MayDrop(sequence, page)) return;
  const int g = sequence.table.granularity();
  for (int slot = 0; slot < kPageTokens; slot += g) {
    const uint64_t group = sequence.table.GroupMask(slot);
    if ((page.resident & group) == 0 || (keep & group) != 0) continue;
    sequence.table.Drop(page, slot, lines);
    sequence.stats.demoted_tokens += std::popcount(page.alive & group);
  }
}

// As the last plan has it: what a store or a promotion under way has moved so
// far must not change the next plan.
std::vector<Tier> PlannedTiers(const Sequence& sequence) {
  std::vector<Tier> tiers;
  tiers.reserve(static_cast<size_t>(sequence.table.num_tokens()));
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const Page& page = sequence.table.page(i);
    for (int slot = 0; slot < std::popcount(page.written); ++slot) {
      const bool alive = (page.alive >> slot & 1) != 0;
      const bool in_t0 = (page.wanted >> slot & 1) != 0;
      tiers.push_back(!alive ? Tier::kT3 : in_t0 ? Tier::kT0 : Tier::kT1);
    }
  }
  return tiers;
}

// Live tokens of groups that the plan before promoted and this one demotes.
int64_t UndoneTokens(const Sequence& sequence, const PlacementPlan& plan) {
  std::vector<int64_t> undone;
  std::set_intersection(sequence.promoted_groups.begin(),
                        sequence.promoted_groups.end(), plan.demote.begin(),
                        plan.demote.end(), std::back_inserter(undone));
  int64_t tokens = 0;
  for (const int64_t group : undone) {
    const int64_t first = group * plan.granularity;
    const Page& page =
        sequence.table.page(static_cast<int>(first / kPageTokens));
    tokens +=
        std::popcount(page.alive & sequence.table.GroupMask(
                                       static_cast<int>(first % kPageTokens)));
  }
  return tokens;
}

void Apply(Sequence& sequence, const PlacementPlan& plan, T0Lines& lines) {
  const int g = plan.granularity;
  for (size_t group = 0; group < plan.tiers.size(); ++group) {
    const int64_t first = static_cast<int64_t>(group) * g;
    Page& page = sequence.table.page(static_cast<int>(first / kPageTokens));
    const uint64_t mask =
        sequence.table.GroupMask(static_cast<int>(first % kPageTokens));
    if (plan.tiers[group] == Tier::kT0) {
      page.wanted |= mask;
      continue;
    }
    page.wanted &= ~mask;
    if ((page.resident & mask) != 0 && !MayDrop(sequence, page)) {
      ++sequence.stats.deferred_drops;
    }
  }
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    DropUnwanted(sequence, sequence.table.page(i), lines);
  }
}

}  // namespace

void DropUnwanted(Sequence& sequence, Page& page, T0Lines& lines) {
  DropGroups(sequence, page, page.wanted, lines);
}

void Park(Sequence& sequence, T0Lines& lines) {
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    DropGroups(sequence, sequence.table.page(i), 0, lines);
  }
}

bool DropForRoom(Sequence& sequence, int64_t sets, T0Lines& lines) {
  const int first_generated =
      sequence.spec.placement.prompt_in_t0
          ? static_cast<int>(sequence.spec.prompt_tokens / kPageTokens)
          : 0;
  const int num_pages = sequence.table.num_pages();
  for (int n = 0; n < num_pages; ++n) {
    if (lines.free_sets() >= sets) return true;
    if (sequence.table.resident_sets() <= sequence.share_sets) return false;
    const int i = (first_generated + n) % num_pages;
    DropGroups(sequence, sequence.table.page(i), 0, lines);
  }
  return lines.free_sets() >= sets;
}

void Seal(Sequence& sequence, int64_t first_position) {
  for (int i = static_cast<int>(first_position / kPageTokens);
       i < sequence.table.num_pages(); ++i) {
    Page& page = sequence.table.page(i);
    if (page.full() && page.state == StoreState::kOpen) {
      page.state = StoreState::kFull;
    }
  }
}

bool IsPlanDue(const Sequence& sequence, int64_t tokens_before) {
  const PlacementSettings& settings = sequence.spec.placement;
  const int64_t prompt = sequence.spec.prompt_tokens;
  const int64_t tokens = sequence.table.num_tokens();
  if (tokens <= prompt) {
    // A prompt that may leave T0 is placed while it comes in.
    return !settings.prompt_in_t0 &&
           SealedTokens(tokens) > SealedTokens(tokens_before);
  }
  for (int64_t generated = std::max<int64_t>(tokens_before - prompt, 0) + 1;
       generated <= tokens - prompt; ++generated) {
    if (ShouldPlan(settings, generated)) return true;
  }
  return false;
}

absl::Status MakePlan(Sequence& sequence, T0Lines& lines) {
  const std::vector<Tier> tiers = PlannedTiers(sequence);
  PlacementInput input;
  input.scores = sequence.scores;
  input.tiers = tiers;
  input.prompt_tokens =
      std::min(sequence.spec.prompt_tokens, sequence.table.num_tokens());
  input.sealed_tokens = SealedTokens(sequence.table.num_tokens());
  input.request = RequestNumber(sequence.spec.request_id);
  input.event = static_cast<uint64_t>(sequence.stats.plans);
  FARKV_ASSIGN_OR_RETURN(const PlacementPlan plan,
                         PlanPlacement(sequence.spec.placement, input));
  ++sequence.stats.plans;
  sequence.stats.undone_promotions += UndoneTokens(sequence, plan);
  sequence.promoted_groups = plan.promote;
  Apply(sequence, plan, lines);
  return absl::OkStatus();
}

void StartPromotions(Sequence& sequence, const T0Lines& lines,
                     const TieringOptions& options, ColdReads& reads) {
  SequencePromotion& promotion = sequence.promotion;
  if (!promotion.fetches.empty()) return;
  if (Clock::Boottime().Now() < promotion.retry_at) return;
  const uint64_t most = std::min(kPromotionBytes, options.staging_bytes / 4);
  if (!reads.HasRoomAhead(most, reads.FetchesPerPromotion())) return;
  const int g = sequence.table.granularity();
  // Room for what steps will add stays free.
  int64_t room = std::min(sequence.share_sets - sequence.table.resident_sets(),
                          lines.free_sets() - kPageTokens / g);
  room = std::min(room, static_cast<int64_t>(most / lines.set_bytes()));
  promotion.pages.clear();
  for (int i = 0; i < sequence.table.num_pages() && room > 0; ++i) {
    const Page& page = sequence.table.page(i);
    if ((page.wanted & page.cold()) == 0) continue;
    if (page.state != StoreState::kStored) continue;
    const RemotePage& remote = sequence.remote.pages[static_cast<size_t>(i)];
    if (remote.moving) continue;  // what T0 gets must be what the node reads
    ReadPage read{page.index, 0, remote.node, ReadWay::kFetch};
    for (int slot = 0; slot < kPageTokens && room > 0; slot += g) {
      const uint64_t group = sequence.table.GroupMask(slot);
      if ((page.wanted & page.cold() & group) == 0) continue;
      read.slots |= group;
      --room;
    }
    promotion.pages.push_back(read);
  }
  if (promotion.pages.empty()) return;
  reads.FetchAllLayers(sequence, promotion.pages, promotion.fetches);
}

namespace {

// The pieces that bring the group of `slot` from a block into a line.
void AddPieces(const KvGeometry& geometry, const ColdBlock& block, int slot,
               int g, std::byte* line, std::vector<CopyPiece>& pieces) {
  const auto rows = static_cast<size_t>(std::popcount(block.slots));
  const auto row =
      static_cast<size_t>(std::popcount(block.slots & SlotMask(0, slot)));
  const auto group = static_cast<size_t>(g);
  const size_t bytes = group * geometry.VectorBytes();
  for (size_t h = 0; h < static_cast<size_t>(geometry.num_kv_heads); ++h) {
    pieces.push_back({line + geometry.KeyOffset(group, h, 0),
                      block.rows + geometry.KeyOffset(rows, h, row), bytes});
    pieces.push_back({line + geometry.ValueOffset(group, h, 0),
                      block.rows + geometry.ValueOffset(rows, h, row), bytes});
  }
}

// Line sets for the groups that are still to come; kNoLineSet for the others.
std::vector<LineSetId> AdoptGroups(Sequence& sequence, const ReadPage& read,
                                   T0Lines& lines) {
  PageTable& table = sequence.table;
  std::vector<LineSetId> sets(static_cast<size_t>(kPageTokens), kNoLineSet);
  Page& page = table.page(read.page_index);
  if (page.state != StoreState::kStored) return sets;
  for (int slot = 0; slot < kPageTokens; slot += table.granularity()) {
    const uint64_t group = table.GroupMask(slot);
    const bool due = (read.slots & page.wanted & page.cold() & group) != 0;
    if (!due || table.resident_sets() >= sequence.share_sets) continue;
    const LineSetId set = lines.Allocate();
    if (set == kNoLineSet) break;
    table.Adopt(page, slot, set);
    sets[static_cast<size_t>(slot)] = set;
    sequence.stats.promoted_tokens += table.granularity();
  }
  return sets;
}

}  // namespace

void FinishPromotions(Sequence& sequence, T0Lines& lines,
                      const KvGeometry& geometry, Stream& stream) {
  SequencePromotion& promotion = sequence.promotion;
  if (promotion.fetches.empty()) return;
  for (const auto& fetch : promotion.fetches) {
    if (!fetch->done()) return;
  }
  auto fetches = std::make_shared<std::vector<std::shared_ptr<FetchOperation>>>(
      std::exchange(promotion.fetches, {}));
  for (const auto& fetch : *fetches) {
    if (fetch->Wait(absl::ZeroDuration()).ok()) continue;
    promotion.retry_at = Clock::Boottime().Now() + kPromotionRetry;
    return;
  }
  std::vector<std::vector<LineSetId>> sets;
  for (const ReadPage& read : promotion.pages) {
    sets.push_back(AdoptGroups(sequence, read, lines));
  }
  sequence.NotePeak(lines);
  std::vector<CopyPiece> pieces;
  for (const auto& fetch : *fetches) {
    for (const ColdBlock& block : fetch->blocks()) {
      const auto read = std::find_if(
          promotion.pages.begin(), promotion.pages.end(),
          [&](const ReadPage& r) { return r.page_index == block.page_index; });
      const auto& page_sets =
          sets[static_cast<size_t>(read - promotion.pages.begin())];
      for (int slot = 0; slot < kPageTokens; ++slot) {
        const LineSetId set = page_sets[static_cast<size_t>(slot)];
        if (set == kNoLineSet) continue;
        AddPieces(geometry, block, slot, lines.granularity(),
                  lines.Line(fetch->spec().layer, set), pieces);
      }
    }
  }
  CopyPieces(stream, pieces);
  if (stream.kind() != DeviceKind::kCpu) stream.Notify([fetches] {});
}

}  // namespace farkv

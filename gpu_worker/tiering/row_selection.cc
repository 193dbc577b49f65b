#include "gpu_worker/tiering/row_selection.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/policy/head_vectors.h"
#include "gpu_worker/tiering/row_reader.h"

namespace farkv {
namespace {

constexpr float kNoRows = -std::numeric_limits<float>::infinity();

// One layer of a step while its rows are chosen.
struct Choice {
  const Sequence& sequence;
  const int layer;
  const int num_heads;         // KV
  const int64_t num_groups;    // the current one included
  std::vector<uint64_t> live;  // [page][KV head]
  int64_t selected = 0, skipped = 0;

  int group_tokens() const { return sequence.spec.selection.group_tokens; }
  int64_t PageOf(int64_t group) const {
    return group * group_tokens() / kPageTokens;
  }
  // Rows of a group that exist.
  uint64_t RowsOf(int64_t group, int head) const {
    const Page& page = sequence.table.page(static_cast<int>(PageOf(group)));
    const auto slot = static_cast<int>(group * group_tokens() % kPageTokens);
    return page.layer_live(layer, num_heads)[head] &
           SlotMask(slot, group_tokens());
  }
};

// By the sequence's own scorer, or by bounds: those of the last groups are not
// there when all their rows were destroyed before they were full.
absl::StatusOr<std::vector<float>> Score(const Choice& choice,
                                         const GroupScoreQuery& query) {
  const auto full = static_cast<size_t>(choice.num_groups - 1);
  const Sequence& sequence = choice.sequence;
  if (!sequence.spec.group_scorer) {
    std::vector<float> scores = QuestScores(
        sequence.selection.bounds[static_cast<size_t>(query.layer)]
                                 [static_cast<size_t>(query.kv_head)],
        query);
    scores.resize(full, kNoRows);
    return scores;
  }
  FARKV_ASSIGN_OR_RETURN(std::vector<float> scores,
                         sequence.spec.group_scorer(query));
  if (scores.size() == full) return scores;
  return absl::InternalError(absl::StrCat(
      "sequence ", sequence.spec.request_id, ", layer ", query.layer,
      ", KV head ", query.kv_head, ": the scorer has ", scores.size(),
      " groups, ", full, " are full"));
}

absl::Status ChooseHead(Choice& choice, const GroupScoreQuery& query) {
  FARKV_ASSIGN_OR_RETURN(std::vector<float> scores, Score(choice, query));
  scores.push_back(0);  // of the current one, which is read anyway
  int64_t with_rows = 0;
  for (int64_t group = 0; group < choice.num_groups; ++group) {
    if (choice.RowsOf(group, query.kv_head) != 0) {
      ++with_rows;
    } else {
      scores[static_cast<size_t>(group)] = kNoRows;
    }
  }
  const std::vector<int64_t> groups = SelectGroups(
      scores,
      choice.sequence.spec.selection.NumSelected(choice.layer, with_rows));
  for (const int64_t group : groups) {
    choice.live[static_cast<size_t>(choice.PageOf(group) * choice.num_heads +
                                    query.kv_head)] |=
        choice.RowsOf(group, query.kv_head);
  }
  const auto selected = static_cast<int64_t>(groups.size());
  choice.selected += selected;
  choice.skipped += with_rows - selected;
  return absl::OkStatus();
}

std::vector<SelectedPage> PagesOf(const Choice& choice) {
  std::vector<SelectedPage> pages;
  for (int i = 0; i < choice.sequence.table.num_pages(); ++i) {
    const auto first = choice.live.begin() + i * choice.num_heads;
    SelectedPage page{i, 0, {first, first + choice.num_heads}};
    for (const uint64_t rows : page.live) page.slots |= rows;
    if (page.slots != 0) pages.push_back(std::move(page));
  }
  return pages;
}

}  // namespace

const SelectedPage* SequenceSelection::Find(int layer,
                                            int32_t page_index) const {
  const std::vector<SelectedPage>& pages = chosen[static_cast<size_t>(layer)];
  const auto found = std::lower_bound(
      pages.begin(), pages.end(), page_index,
      [](const SelectedPage& page, int32_t i) { return page.page_index < i; });
  return found == pages.end() || found->page_index != page_index ? nullptr
                                                                 : &*found;
}

absl::Status CheckSelection(const SequenceSpec& spec) {
  const SelectionSettings& selection = spec.selection;
  if (selection.policy == SelectionPolicy::kNone) return absl::OkStatus();
  FARKV_RETURN_IF_ERROR(selection.Validate());
  if (kPageTokens % selection.group_tokens == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("group_tokens of selection is ", selection.group_tokens,
                   ", must divide the ", kPageTokens, " positions of a page"));
}

void PrepareSelection(Sequence& sequence, const KvGeometry& geometry) {
  const SelectionSettings& settings = sequence.spec.selection;
  if (settings.policy == SelectionPolicy::kNone) return;
  const auto layers = static_cast<size_t>(geometry.num_layers);
  sequence.selection.chosen.resize(layers);
  if (sequence.spec.group_scorer) return;
  sequence.selection.bounds.resize(layers);
  for (auto layer = static_cast<size_t>(settings.dense_layers); layer < layers;
       ++layer) {
    sequence.selection.bounds[layer].assign(
        static_cast<size_t>(geometry.num_kv_heads),
        KeyBounds(geometry.head_dim, settings.group_tokens));
  }
}

absl::Status ChooseRows(const StepPart& part, int layer, const float* queries,
                        const KvGeometry& geometry, int num_query_heads) {
  Sequence& sequence = *part.sequence;
  const int heads = geometry.num_kv_heads;
  const int group = num_query_heads / heads;
  const auto floats = static_cast<size_t>(group * geometry.head_dim);
  Choice choice{
      .sequence = sequence,
      .layer = layer,
      .num_heads = heads,
      .num_groups =
          part.first_position / sequence.spec.selection.group_tokens + 1,
      .live = {}};
  choice.live.resize(static_cast<size_t>(sequence.table.num_pages() * heads));
  for (int head = 0; head < heads; ++head) {
    const GroupScoreQuery query{
        .request = sequence.id.value,
        .layer = layer,
        .kv_head = head,
        .num_heads = group,
        .queries = {queries + static_cast<size_t>(head) * floats, floats}};
    FARKV_RETURN_IF_ERROR(ChooseHead(choice, query));
  }
  sequence.selection.chosen[static_cast<size_t>(layer)] = PagesOf(choice);
  sequence.selection.step_selected += choice.selected;
  sequence.selection.step_skipped += choice.skipped;
  return absl::OkStatus();
}

void NoteSelectedStep(const StepPart& part, const T0Lines& lines,
                      const KvGeometry& geometry, Stream& stream) {
  Sequence& sequence = *part.sequence;
  SequenceSelection& selection = sequence.selection;
  sequence.stats.selected_groups += std::exchange(selection.step_selected, 0);
  sequence.stats.skipped_groups += std::exchange(selection.step_skipped, 0);
  if (selection.bounds.empty()) return;
  const int64_t tokens = sequence.spec.selection.group_tokens;
  const int64_t begin = part.first_position / tokens * tokens;
  const int64_t end = sequence.table.num_tokens() / tokens * tokens;
  if (begin >= end) return;
  RowReader reader(sequence, lines, geometry, stream, nullptr,
                   absl::ZeroDuration());
  std::vector<float> key(static_cast<size_t>(geometry.head_dim));
  for (int layer = sequence.spec.selection.dense_layers;
       layer < geometry.num_layers; ++layer) {
    reader.LoadResident(layer);
    for (int64_t position = begin; position < end; ++position) {
      const Page& page =
          sequence.table.page(static_cast<int>(position / kPageTokens));
      for (int head = 0; head < geometry.num_kv_heads; ++head) {
        const uint64_t live =
            page.layer_live(layer, geometry.num_kv_heads)[head];
        if ((live >> (position % kPageTokens) & 1) == 0) continue;
        const std::byte* const row = reader.Key(head, position);
        ReadRow({{&row, 1}, geometry.head_dim, geometry.dtype}, 0, key.data());
        selection.bounds[static_cast<size_t>(layer)][static_cast<size_t>(head)]
            .Add(position, key);
      }
    }
  }
}

}  // namespace farkv

#include "gpu_worker/tiering/step.h"

#include "common/base/status_macros.h"
#include "gpu_worker/tiering/lost_rows.h"

namespace farkv {

Step::Step(const KvGeometry& geometry)
    : geometry_(geometry), layers_(static_cast<size_t>(geometry.num_layers)) {}

void Step::Start() {
  active_ = true;
  num_parts_ = 0;
}

void Step::AddPart(Sequence& sequence, int32_t num_rows, T0Lines& lines) {
  if (num_parts_ == parts_.size()) parts_.emplace_back();
  StepPart& part = parts_[num_parts_++];
  part.sequence = &sequence;
  part.num_rows = num_rows;
  part.again.clear();
  if (!sequence.loss.positions.empty()) return AddLost(part, num_rows, lines);
  part.first_position = sequence.table.num_tokens();
  sequence.table.Append(num_rows, lines);
  sequence.NotePeak(lines);
  sequence.selection.step_selected = sequence.selection.step_skipped = 0;
  const auto tokens = static_cast<size_t>(sequence.table.num_tokens());
  part.score_deltas.assign(tokens, 0);
  part.head_deltas.resize(sequence.destruction.head_scores.size());
  for (std::vector<int64_t>& layer : part.head_deltas) {
    layer.assign(tokens * static_cast<size_t>(geometry_.num_kv_heads), 0);
  }
}

void Step::AddLost(StepPart& part, int32_t num_rows, T0Lines& lines) const {
  Sequence& sequence = *part.sequence;
  const std::vector<int64_t>& lost = sequence.loss.positions;
  part.again.assign(lost.begin(), lost.begin() + num_rows);
  part.first_position = part.again.front();
  part.score_deltas.clear();
  part.head_deltas.clear();
  part.adopted.clear();
  part.ranges_again.clear();
  for (const int64_t position : part.again) {
    Page& page = sequence.table.page(static_cast<int>(position / kPageTokens));
    const int slot = static_cast<int>(position % kPageTokens);
    if ((page.resident >> slot & 1) == 0) {
      sequence.table.Adopt(page, slot, lines.Allocate());
      part.adopted.push_back(position);
    }
    std::vector<PositionRange>& ranges = part.ranges_again;
    if (ranges.empty() ||
        ranges.back().first + ranges.back().count != position) {
      ranges.push_back({position, 0});
    }
    ++ranges.back().count;
  }
  sequence.NotePeak(lines);
  part.pages_again =
      LiveBefore(sequence.table, part.again.back() + 1, geometry_.num_kv_heads);
}

void Step::AddTarget(int layer, const PageTable& table, int64_t position,
                     const T0Lines& lines,
                     std::vector<RowTarget>& targets) const {
  const auto g = static_cast<size_t>(lines.granularity());
  const Page& page = table.page(static_cast<int>(position / kPageTokens));
  const auto slot = static_cast<size_t>(position % kPageTokens);
  std::byte* line = lines.Line(layer, page.lines[slot / g]);
  targets.push_back({line + geometry_.KeyOffset(g, 0, slot % g),
                     line + geometry_.ValueOffset(g, 0, slot % g),
                     geometry_.HeadStride(g)});
}

void Step::AddTargets(int layer, const StepPart& part, const T0Lines& lines,
                      std::vector<RowTarget>& targets) const {
  const PageTable& table = part.sequence->table;
  for (const int64_t position : part.again) {
    AddTarget(layer, table, position, lines, targets);
  }
  if (!part.again.empty()) return;
  for (int64_t position = part.first_position;
       position < part.first_position + part.num_rows; ++position) {
    AddTarget(layer, table, position, lines, targets);
  }
}

// A view for each range of consecutive positions, over the same pages: what a
// row must not see yet, the causal edge hides.
absl::Status Step::AddViewsOfLost(int layer, StepPart& part,
                                  const T0Lines& lines,
                                  std::span<const ColdBlock> cold,
                                  int32_t first_row,
                                  std::vector<AttentionSequence>& views) const {
  FARKV_ASSIGN_OR_RETURN(
      const std::span<const PageRuns> pages,
      part.sequence->runs.Select(layer, part.sequence->table, lines, cold,
                                 part.pages_again, {}));
  for (const PositionRange& range : part.ranges_again) {
    AttentionSequence& view = views.emplace_back();
    view.first_row = first_row;
    view.num_rows = range.count;
    view.first_position = range.first;
    view.pages = pages;
    first_row += range.count;
  }
  return absl::OkStatus();
}

absl::StatusOr<LayerView> Step::Layer(
    int layer, const T0Lines& lines,
    std::span<const std::vector<ColdBlock>> cold,
    std::span<AttentionElsewhere> elsewhere) {
  LayerBuffers& buffers = layers_[static_cast<size_t>(layer)];
  buffers.targets.clear();
  buffers.sequences.clear();
  int32_t first_row = 0;
  for (size_t i = 0; i < num_parts_; ++i) {
    StepPart& part = parts_[i];
    AddTargets(layer, part, lines, buffers.targets);
    std::span<const ColdBlock> blocks;
    if (i < cold.size()) blocks = cold[i];
    if (!part.again.empty()) {
      FARKV_RETURN_IF_ERROR(AddViewsOfLost(layer, part, lines, blocks,
                                           first_row, buffers.sequences));
      first_row += part.num_rows;
      continue;
    }
    AttentionSequence view;
    view.first_row = first_row;
    view.num_rows = part.num_rows;
    view.first_position = part.first_position;
    if (!part.Selects(layer)) {
      FARKV_ASSIGN_OR_RETURN(
          view.pages,
          part.sequence->runs.Update(layer, part.sequence->table, lines, blocks,
                                     part.sequence->reads.elsewhere));
    }
    view.scores = part.score_deltas;
    if (!part.head_deltas.empty()) {
      view.head_scores = part.head_deltas[static_cast<size_t>(layer)];
    }
    if (!part.sequence->reads.elsewhere.empty()) {
      view.elsewhere = &elsewhere[i];
    }
    buffers.sequences.push_back(view);
    first_row += part.num_rows;
  }
  return LayerView{buffers.targets, buffers.sequences, !elsewhere.empty()};
}

absl::Status Step::Select(int layer, const T0Lines& lines,
                          std::span<const std::vector<ColdBlock>> cold) {
  LayerBuffers& buffers = layers_[static_cast<size_t>(layer)];
  size_t view = 0;
  for (size_t i = 0; i < num_parts_; ++i) {
    const StepPart& part = parts_[i];
    const size_t at = view;
    view += part.again.empty() ? 1 : part.ranges_again.size();
    if (!part.Selects(layer)) continue;
    Sequence& sequence = *part.sequence;
    std::span<const ColdBlock> blocks;
    if (i < cold.size()) blocks = cold[i];
    FARKV_ASSIGN_OR_RETURN(
        buffers.sequences[at].pages,
        sequence.runs.Select(
            layer, sequence.table, lines, blocks,
            sequence.selection.chosen[static_cast<size_t>(layer)],
            sequence.reads.elsewhere));
  }
  return absl::OkStatus();
}

void Step::CommitHeadScores(const StepPart& part) const {
  const size_t tokens = part.score_deltas.size();
  for (size_t layer = 0; layer < part.head_deltas.size(); ++layer) {
    auto& heads = part.sequence->destruction.head_scores[layer];
    const std::vector<int64_t>& deltas = part.head_deltas[layer];
    for (size_t head = 0; head < heads.size(); ++head) {
      heads[head].resize(tokens, 0);
      for (size_t i = 0; i < tokens; ++i) {
        heads[head][i] += deltas[head * tokens + i];
      }
    }
  }
}

void Step::Commit() {
  for (StepPart& part : parts()) {
    if (!part.again.empty()) continue;
    std::vector<int64_t>& scores = part.sequence->scores;
    scores.resize(part.score_deltas.size(), 0);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] += part.score_deltas[i];
    }
    CommitHeadScores(part);
  }
  active_ = false;
}

void Step::Discard(T0Lines& lines) {
  for (StepPart& part : parts()) {
    PageTable& table = part.sequence->table;
    if (part.again.empty()) {
      table.Truncate(part.first_position, lines);
      continue;
    }
    for (const int64_t position : part.adopted) {
      table.Drop(table.page(static_cast<int>(position / kPageTokens)),
                 static_cast<int>(position % kPageTokens), lines);
    }
  }
  active_ = false;
}

}  // namespace farkv

// One forward pass over some sequences: the rows it adds, what each layer
// needs, and the scores it collects. Nothing of a step is visible in its
// sequences' scores before Commit, and Discard removes its rows again.
//
// Buffers handed out stay in place until the step ends. Thread-compatible.
#ifndef FARKV_GPU_WORKER_TIERING_STEP_H_
#define FARKV_GPU_WORKER_TIERING_STEP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tiering/selected_rows.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/t0_lines.h"

namespace farkv {

// Consecutive positions.
struct PositionRange {
  int64_t first = 0;
  int32_t count = 0;
};

// One sequence's part of a step.
struct StepPart {
  Sequence* sequence = nullptr;
  int32_t num_rows = 0;
  int64_t first_position = 0;         // tokens before the step
  std::vector<int64_t> score_deltas;  // per position, the step's own
  // [layer] -> [KV head][position], when the sequence's policy asks for it.
  std::vector<std::vector<int64_t>> head_deltas;
  // Not empty: the rows are no new ones but these positions', ascending, which
  // were lost. Nothing is scored, and nothing behind the last one is read.
  std::vector<int64_t> again;
  std::vector<SelectedPage> pages_again;    // what they read, in every layer
  std::vector<int64_t> adopted;             // of each group that got a line set
  std::vector<PositionRange> ranges_again;  // `again` once more

  // Whether the step reads some groups of rows of `layer` only, which its query
  // chooses: behind the prompt, and there are its rows one at a time.
  bool Selects(int layer) const {
    const SelectionSettings& selection = sequence->spec.selection;
    return selection.policy != SelectionPolicy::kNone &&
           layer >= selection.dense_layers &&
           first_position >= sequence->spec.prompt_tokens;
  }
};

class Step {
 public:
  explicit Step(const KvGeometry& geometry);

  bool active() const { return active_; }
  std::span<StepPart> parts() { return {parts_.data(), num_parts_}; }

  // Starts a step. Part by part: AddPart appends the rows to the sequence, or
  // takes the first of those that it has lost; their line sets must be free.
  void Start();
  void AddPart(Sequence& sequence, int32_t num_rows, T0Lines& lines);

  // Views of `layer`, but for the pages of parts that select in it; `cold[i]`
  // holds the cold blocks of part i (empty when
  // nothing of the whole step is cold), `elsewhere[i]` is for the pages that
  // nodes attend to (empty when nothing is pushed down). Errors as
  // RunCache::Update.
  absl::StatusOr<LayerView> Layer(int layer, const T0Lines& lines,
                                  std::span<const std::vector<ColdBlock>> cold,
                                  std::span<AttentionElsewhere> elsewhere);

  // Completes the views of `layer` for the parts that select in it, once their
  // rows have been chosen; `cold` as above.
  absl::Status Select(int layer, const T0Lines& lines,
                      std::span<const std::vector<ColdBlock>> cold);

  // Adds the scores; ends the step. Who has lost rows notes what is there
  // again.
  void Commit();
  // Takes the rows away again; ends the step.
  void Discard(T0Lines& lines);

 private:
  struct LayerBuffers {
    std::vector<RowTarget> targets;
    std::vector<AttentionSequence> sequences;
  };

  void AddLost(StepPart& part, int32_t num_rows, T0Lines& lines) const;
  void CommitHeadScores(const StepPart& part) const;
  void AddTarget(int layer, const PageTable& table, int64_t position,
                 const T0Lines& lines, std::vector<RowTarget>& targets) const;
  void AddTargets(int layer, const StepPart& part, const T0Lines& lines,
                  std::vector<RowTarget>& targets) const;
  absl::Status AddViewsOfLost(int layer, StepPart& part, const T0Lines& lines,
                              std::span<const ColdBlock> cold,
                              int32_t first_row,
                              std::vector<AttentionSequence>& views) const;

  KvGeometry geometry_;
  bool active_ = false;
  // The first num_parts_ are the step's; the others keep their storage.
  std::vector<StepPart> parts_;
  size_t num_parts_ = 0;
  std::vector<LayerBuffers> layers_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_STEP_H_

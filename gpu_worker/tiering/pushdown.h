// Pushdown: nodes attend to the cold pages that they hold, in place, and send
// back subtrees of the attention tree instead of rows. DESIGN 5.3 and 5.5.
//
// One layer of a step: Layer() hands out the places for what comes from
// elsewhere, Send() sends the layer's queries to every node that has pages to
// attend to, and the attention kernel, when it has computed the worker's own
// leaves, waits for the answers there. Prefill chunks are not pushed down.
//
// A node that fails makes the step ABORTED, at the next layer or at Commit; for
// a while its pages are fetched instead, so the repeated step needs nothing of
// it that other steps do not.
//
// Scores: a node keeps the weights of the leaves it computed. The m and l that
// they need are sent along with the next step's queries, or when the scores
// are collected, which a placement plan waits for. What a lost answer takes
// with it is lost on every party, and counted.
//
// With --cold=auto each node's mode is chosen anew for each step, by what nodes
// and links have delivered so far (cold_mode.h); the step tells what it took.
//
// Thread-compatible: the engine thread owns it; the kernel's wait is the one
// thing that other threads call.
#ifndef FARKV_GPU_WORKER_TIERING_PUSHDOWN_H_
#define FARKV_GPU_WORKER_TIERING_PUSHDOWN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/page/bodies.h"
#include "gpu_worker/tiering/cold_mode.h"
#include "gpu_worker/tiering/node_call.h"
#include "gpu_worker/tiering/node_link.h"
#include "gpu_worker/tiering/node_pause.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/step.h"
#include "gpu_worker/tiering/step_meter.h"
#include "gpu_worker/tiering/tiering_options.h"
#include "kernels/attention.h"
#include "kernels/stream.h"

namespace farkv {

class Pushdown {
 public:
  // Borrowed parts outlive it. `clock`: of the pauses, and of what nodes take.
  Pushdown(const TieringOptions& options, const KvGeometry& geometry,
           int num_query_heads,
           std::span<const std::unique_ptr<NodeLink>> links, const Clock& clock,
           DeviceKind device = DeviceKind::kCpu);

  // By node: whether it may be asked to attend, now.
  std::vector<bool> Nodes() const;
  // By node: whether it may attend where its rows cannot be had otherwise, lost
  // or paused though it may be.
  std::vector<bool> Able() const;
  // By node: whether its cold pages are left to it in the step of `parts`,
  // which begins.
  std::vector<bool> Choose(std::span<const StepPart> parts);
  // Whether a node can attend for this part at all. Nodes add attention up over
  // heads: who needs it apart reads the rows. So do rows that are computed
  // again, which must not be scored again.
  static bool CanPush(const StepPart& part) {
    return part.num_rows == 1 && part.again.empty() &&
           part.sequence->destruction.head_scores.empty();
  }

  // `parts` as ColdReads::Begin has prepared them; `step` is its number.
  void Begin(std::span<StepPart> parts, uint64_t step);
  // One place per part, in order; empty when nothing is pushed down. ABORTED
  // when a node has failed in an earlier layer: the others need not wait for
  // it, the step is lost already.
  absl::StatusOr<std::span<AttentionElsewhere>> Layer(int layer);
  // `queries`: f32 [rows of the step][query heads][head_dim], host memory, read
  // before return. Every Layer() that returned places needs it, before the
  // layer's attention is enqueued.
  absl::Status Send(int layer, const float* queries, float scale);
  // After the stream was synchronised: keeps the step's globals, or ABORTED.
  // `fetch_waits`: what the step has waited for rows.
  absl::Status Commit(absl::Duration fetch_waits = absl::ZeroDuration());
  void Discard();

  // Adds to the sequence's scores what nodes have gathered for it. Waits, but
  // not for a node that is lost or has failed of late: its scores are lost.
  void CollectScores(Sequence& sequence);
  // The same where all of them can be had, from nodes that have failed of late
  // too. False: some are lost, and how many of the others the scores have is
  // open.
  bool CollectAllScores(Sequence& sequence);

 private:
  // An attend request under way, and its answer once that has come.
  struct Attend {
    int node = 0;
    AttendRequest request;
    std::vector<size_t> parts;  // of the step, by sequence of the request
    std::vector<AttendSequenceReply> replies;
    std::shared_ptr<NodeCall> call;
    // From sending to the end of the checks: by the clock of the rates, and as
    // this machine's time went by.
    absl::Time sent, sent_here;
    absl::Duration took, took_here;
  };
  struct LayerState {
    std::vector<std::shared_ptr<Attend>> attends;
    std::vector<AttentionElsewhere> elsewhere;  // by part
    bool sent = false;
    bool received = false;
  };
  struct Collection;

  AttendSequence MakeSequence(const StepPart& part, int layer, int node,
                              const float* query) const;
  std::shared_ptr<Attend> NewAttend(int node, float scale) const;
  absl::Status Start(const std::shared_ptr<Attend>& attend, int layer);
  absl::Status SendTo(int node, int layer, const float* queries, float scale);
  uint64_t ReplyBytes(size_t pages) const;
  bool IsFull(const Attend& attend, size_t pages, size_t part,
              size_t more) const;
  // Of one request.
  size_t MaxPages() const;
  // On the thread that runs the attention.
  void Receive(int layer);
  void KeepGlobals(StepPart& part, size_t index);
  void KeepGlobalsOfLayer(StepPart& part, size_t index, int layer);
  void NoteSuccess();
  // Of --cold=auto (pushdown_choice.cc).
  std::vector<ColdWork> WorkOf(std::span<const StepPart> parts) const;
  void AddWork(const Sequence& sequence, std::vector<ColdWork>& work) const;
  ColdChoice ChooseFor(const NodeLink& link, const ColdWork& work,
                       bool answers);
  // A node's CPU has not the bits of a GPU.
  bool MustFetch() const {
    return device_ == DeviceKind::kCuda &&
           options_.exactness == ExactnessMode::kBitwise;
  }
  void MeterStep(absl::Duration fetch_waits);
  AttendSample SampleOf(int node) const;
  // From nodes that are `answering`; how many did not give theirs.
  int Collect(Sequence& sequence, const std::vector<bool>& answering);
  Collection StartCollection(Sequence& sequence, int node,
                             const std::set<int32_t>& pages) const;

  const TieringOptions& options_;
  const KvGeometry geometry_;
  const int num_query_heads_;
  const std::span<const std::unique_ptr<NodeLink>> links_;
  const Clock& clock_;
  const DeviceKind device_;

  std::vector<ModeChoice> choices_;  // by node
  StepMeter meter_;
  MeteredStep metered_;  // this step, as far as it is known
  bool meters_ = false;  // it is all of one mode
  absl::Time step_began_;

  std::span<StepPart> parts_;
  uint64_t step_ = 0;
  bool active_ = false;  // the step pushes something down
  std::vector<LayerState> layers_;

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the step's first failure
  absl::Duration attend_waits_ ABSL_GUARDED_BY(mutex_);    // of the step
  std::vector<NodePause> pauses_ ABSL_GUARDED_BY(mutex_);  // by node
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_PUSHDOWN_H_

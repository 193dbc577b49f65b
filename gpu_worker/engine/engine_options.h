// Settings of the engine, copied once from the worker's flags. Plain values.
#ifndef FARKV_GPU_WORKER_ENGINE_ENGINE_OPTIONS_H_
#define FARKV_GPU_WORKER_ENGINE_ENGINE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"
#include "common/policy/destruction_event.h"
#include "common/policy/placement_settings.h"
#include "common/policy/selection.h"
#include "common/telemetry/metrics.h"
#include "gpu_worker/tiering/tiering_options.h"

namespace farkv {

// Sees every row of logits that chose a token: for benches and evaluation.
// `position` is the absolute position of the token that the logits choose.
// Runs on the engine's thread.
using LogitSink =
    std::function<void(const std::string& request_id, int64_t position,
                       std::span<const float> logits)>;

class EngineView;

// Runs with the logit sink and may ask which of the request's rows are left:
// those that the step behind those logits left, destroyed what was due after
// it. On the engine's thread.
using CacheSink = std::function<void(
    const EngineView& engine, const std::string& request_id, int64_t position)>;

// For which position a new token is rotated once rows have been destroyed
// (ALGORITHMS 0.4).
enum class PositionMode : uint8_t {
  kAbsolute,  // that of the text: tokens that were ever processed before it
  // The other two are for benches. The number of rows that are left, whose keys
  // are turned to count on from 0; without memory nodes only.
  kCompact,
  // That number, while keys stay as they were rotated: what happens when a
  // shortened cache is asked how long it is. Published figures were made so.
  kMixed,
};

struct EngineOptions {
  std::string model;  // directory, or a .gguf file (ModelFiles)
  std::string device = "cpu";
  DType kv_dtype = DType::kBf16;
  int max_sequences = 8;    // that run at once
  int max_queue = 64;       // that wait
  int threads = 2;          // of the CPU kernels, the engine's included
  int prefill_chunk = 512;  // most rows of a step
  uint64_t seed = 0;        // of requests that name none
  PlacementSettings placement;
  TieringOptions tiering;
  // What destroys rows of requests that say nothing of it; nullopt: nothing.
  std::optional<DestructionSettings> destruction;
  // Which rows decode steps of requests that say nothing of it read.
  SelectionSettings selection;
  // Ranks groups of rows in place of Quest's bounds, where there is a selection
  // (a trained gate); may be empty. On the engine's thread.
  GroupScorer group_scorer;
  PositionMode positions = PositionMode::kAbsolute;
  LogitSink logit_sink;  // may be empty
  // For benches and tests of models that decode faster than their pages can be
  // stored: after so many steps all stores are waited for. 0: never.
  int await_stores_every = 0;
  CacheSink cache_sink;        // may be empty
  Metrics* metrics = nullptr;  // borrowed; may be null
  // Called when the model is loaded, before the first node hears of the worker.
  std::function<void()> before_nodes;

  // INVALID_ARGUMENT naming the flag, its value and the allowed range.
  absl::Status Validate() const;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_ENGINE_OPTIONS_H_

// Runs requests on an engine inside this process and keeps what they did:
// every row of logits, when each token came, the tier figures.
#ifndef FARKV_BENCH_ENGINE_RUN_H_
#define FARKV_BENCH_ENGINE_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/node_cluster.h"
#include "gpu_worker/engine/engine.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv::bench {

struct RequestRun {
  std::vector<int32_t> tokens;
  // [tokens][vocab], empty unless logits were kept.
  std::vector<float> logits;
  // Since the first request was submitted, one per token.
  std::vector<double> token_seconds;
  GenerationEnd end;
};

struct RunSettings {
  bool keep_logits = false;
  // The number of the first request: of its name, which draws depend on.
  size_t first_request = 0;
  // Least time between two tokens of the first request; a model that decodes
  // faster than its pages can be stored would have no cold rows.
  absl::Duration pace = absl::ZeroDuration();
  // Sees every row of logits as EngineOptions::logit_sink does.
  LogitSink observe = {};
  // May change rows on their way to a node; on several threads at once.
  StoredRowsFilter stored_rows_filter = {};
};

// The number of a request that RunRequests named.
absl::StatusOr<size_t> RequestNumberOf(const std::string& request_id);

// Submits all `requests` at once to a fresh engine and waits for their ends.
// The error of the first request that failed; INTERNAL for one that lost
// rows and recomputed them: nothing is made to fail here, and its tokens would
// show the recovery instead of the cold reads. INTERNAL, too, when the engine
// keeps something of them or an operation has not completed exactly once.
absl::StatusOr<std::vector<RequestRun>> RunRequests(
    EngineOptions options, const std::vector<GenerationRequest>& requests,
    const RunSettings& settings = {});

// `length` tokens in [0, vocab) that depend on seed and stream only.
std::vector<int32_t> RandomTokens(uint64_t seed, uint64_t stream,
                                  int64_t length, int32_t vocab);

// Points `options` at nodes, by the addresses of their control planes or those
// of a cluster, whose maps are used where `mode` may.
void UseNodes(const std::vector<std::string>& addresses, ColdMode mode,
              EngineOptions& options);
void UseCluster(const NodeCluster& cluster, ColdMode mode,
                EngineOptions& options);

const char* ColdModeName(ColdMode mode);

// Cold rows that came to attention in this way; kAuto: in any.
int64_t ColdRows(ColdMode mode, const SequenceTierStats& tiers);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ENGINE_RUN_H_

#include "bench/plan_node.h"

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace farkv::bench {

absl::StatusOr<PeerStats> MeasurePeer(
    EngineOptions options, const std::vector<GenerationRequest>& requests,
    absl::Duration pace) {
  // The engine's thread alone comes here.
  options.logit_sink = [pace](const std::string& request_id, int64_t,
                              std::span<const float>) {
    if (request_id == "plan-0") absl::SleepFor(pace);
  };
  FARKV_ASSIGN_OR_RETURN(const auto engine, Engine::Create(std::move(options)));
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (GenerationRequest request : requests) {
    request.request_id = absl::StrCat("plan-", streams.size());
    FARKV_ASSIGN_OR_RETURN(auto stream, engine->Submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  for (const auto& stream : streams) {
    GenerationEvent event;
    while (!event.end) event = stream->WaitAndTake();
    if (event.end->reason == FinishReason::kError) return event.end->error;
  }
  const std::vector<PeerStats> peers = engine->Peers();
  if (peers.size() == 1) return peers.front();
  return absl::FailedPreconditionError(
      absl::StrCat("the engine has ", peers.size(), " nodes, must have 1"));
}

}  // namespace farkv::bench

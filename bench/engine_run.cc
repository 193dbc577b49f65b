#include "bench/engine_run.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "bench/settled.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace farkv::bench {
namespace {

constexpr char kIdPrefix[] = "bench-";

std::string RequestId(size_t number) { return absl::StrCat(kIdPrefix, number); }

// Filled in by the engine's thread, read after the ends have been taken.
class Recorder {
 public:
  explicit Recorder(const RunSettings& settings) : settings_(settings) {}

  void operator()(const std::string& request_id, int64_t position,
                  std::span<const float> row) {
    if (request_id == RequestId(settings_.first_request)) Pace();
    if (settings_.observe) settings_.observe(request_id, position, row);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start_);
    absl::MutexLock lock(&mutex_);
    RequestRun& run = runs_[request_id];
    run.token_seconds.push_back(seconds);
    if (settings_.keep_logits)
      run.logits.insert(run.logits.end(), row.begin(), row.end());
  }

  // From now on the time counts; before the first request is submitted.
  void Start() { start_ = last_ = absl::Now(); }

  RequestRun Take(const std::string& request_id) {
    absl::MutexLock lock(&mutex_);
    return std::move(runs_[request_id]);
  }

 private:
  void Pace() {
    absl::SleepFor(last_ + settings_.pace - absl::Now());
    last_ = absl::Now();
  }

  const RunSettings settings_;
  absl::Time start_;  // before and not after submission
  absl::Time last_;   // afterwards the engine's thread alone uses it
  absl::Mutex mutex_;
  std::map<std::string, RequestRun> runs_ ABSL_GUARDED_BY(mutex_);
};

// What an engine whose requests have ended still holds or waits for.
std::string DebtsOf(const Engine& engine) {
  Debts debts;
  const EngineLoad load = engine.Load();
  debts.MustBeZero("sequences", load.running);
  debts.MustBeZero("waiting requests", load.waiting);
  debts.MustBeZero("T0 bytes", static_cast<double>(load.t0.used_bytes));
  debts.MustBeZero("staging bytes", static_cast<double>(load.t0.staging_bytes));
  for (const PeerStats& peer : engine.Peers()) {
    const TransportCounters& wire = peer.transfers;
    debts.MustBeZero(peer.address + ": open operations",
                     static_cast<double>(wire.open_operations));
    debts.MustBeEqual(peer.address + ": operations submitted and completed",
                      static_cast<double>(wire.submitted),
                      static_cast<double>(wire.completed));
    debts.MustBeEqual(peer.address + ": requests and callbacks",
                      static_cast<double>(peer.requests_sent),
                      static_cast<double>(peer.requests_answered));
  }
  return debts.Text();
}

}  // namespace

absl::StatusOr<size_t> RequestNumberOf(const std::string& request_id) {
  absl::string_view rest = request_id;
  size_t number = 0;
  if (absl::ConsumePrefix(&rest, kIdPrefix) &&
      absl::SimpleAtoi(rest, &number)) {
    return number;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", request_id, "\" is no request of a bench"));
}

absl::StatusOr<std::vector<RequestRun>> RunRequests(
    EngineOptions options, const std::vector<GenerationRequest>& requests,
    const RunSettings& settings) {
  Recorder recorder(settings);
  options.logit_sink = [&recorder](const std::string& request_id,
                                   int64_t position,
                                   std::span<const float> row) {
    recorder(request_id, position, row);
  };
  NodeAccess access = MakeNodeAccess(options.tiering);
  access.stored_rows_filter = settings.stored_rows_filter;
  FARKV_ASSIGN_OR_RETURN(auto engine,
                         Engine::CreateWith(std::move(options), access));
  std::vector<std::shared_ptr<GenerationStream>> streams;
  recorder.Start();
  for (size_t i = 0; i < requests.size(); ++i) {
    GenerationRequest request = requests[i];
    request.request_id = RequestId(settings.first_request + i);
    FARKV_ASSIGN_OR_RETURN(auto stream, engine->Submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  std::vector<RequestRun> runs;
  for (const auto& stream : streams) {
    std::vector<int32_t> tokens;
    GenerationEvent event;
    while (!event.end) {
      event = stream->WaitAndTake();
      tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
    }
    if (event.end->reason == FinishReason::kError) return event.end->error;
    if (const int64_t again = event.end->tiers.recomputed_tokens; again > 0) {
      return absl::InternalError(absl::StrCat(
          stream->request_id(), ": its cold rows were lost and ", again,
          " tokens recomputed, must be 0 where nothing is made to fail"));
    }
    RequestRun run = recorder.Take(stream->request_id());
    run.tokens = std::move(tokens);
    run.end = *std::move(event.end);
    runs.push_back(std::move(run));
  }
  FARKV_RETURN_IF_ERROR(
      AwaitSettled([&engine] { return DebtsOf(*engine); }, nullptr));
  return runs;
}

std::vector<int32_t> RandomTokens(uint64_t seed, uint64_t stream,
                                  int64_t length, int32_t vocab) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < length; ++i) {
    const uint64_t draw = CounterDraw(seed, {stream, static_cast<uint64_t>(i)});
    tokens.push_back(static_cast<int32_t>(draw % static_cast<uint64_t>(vocab)));
  }
  return tokens;
}

void UseNodes(const std::vector<std::string>& addresses, ColdMode mode,
              EngineOptions& options) {
  options.tiering.memory_nodes = addresses;
  options.tiering.cold = mode;
  // A busy machine may keep a node from answering for a second; that is not
  // what a bench is about.
  options.tiering.heartbeat = absl::Seconds(2);
}

void UseCluster(const NodeCluster& cluster, ColdMode mode,
                EngineOptions& options) {
  UseNodes(cluster.Addresses(), mode, options);
  if (mode != ColdMode::kPrefetch) {
    options.tiering.map_dir = cluster.map_dir();
  }
}

const char* ColdModeName(ColdMode mode) {
  switch (mode) {
    case ColdMode::kAuto:
      return "auto";
    case ColdMode::kMap:
      return "map";
    case ColdMode::kPrefetch:
      return "prefetch";
    case ColdMode::kPushdown:
      return "pushdown";
  }
  return "unknown";
}

int64_t ColdRows(ColdMode mode, const SequenceTierStats& tiers) {
  switch (mode) {
    case ColdMode::kMap:
      return tiers.cold_rows_mapped;
    case ColdMode::kPrefetch:
      return tiers.cold_rows_fetched;
    case ColdMode::kPushdown:
      return tiers.cold_rows_pushed_down;
    case ColdMode::kAuto:
      break;
  }
  return tiers.cold_rows_mapped + tiers.cold_rows_fetched +
         tiers.cold_rows_pushed_down;
}

}  // namespace farkv::bench

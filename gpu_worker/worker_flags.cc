#include "gpu_worker/worker_flags.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

absl::Status Later(const char* flag, const std::string& value) {
  return absl::UnimplementedError(
      absl::StrCat("--", flag, " is ", value,
                   "; this release does not have it, leave the default"));
}

void RegisterProcess(Flags& flags, WorkerFlags& f) {
  flags.AddText("model", &f.engine.model,
                "Directory or .gguf file; has no default");
  flags.AddText("device", &f.engine.device, "cpu or cuda");
  flags.AddAddress("listen", &f.listen, "Generate API");
  flags.AddAddress("admin-listen", &f.admin_listen, "Admin API");
  flags.AddAddress("metrics-listen", &f.metrics_listen,
                   "/metrics, /healthz, /readyz");
  flags.AddText("port-file", &f.port_file,
                "JSON file with the bound ports, written when ready");
  flags.AddDuration("drain-grace", &f.drain_grace,
                    {absl::Milliseconds(1), absl::Hours(24),
                     "after SIGTERM the process is expected to end"},
                    "How long running requests may go on after SIGTERM");
  flags.AddText("tls-ca", &f.tls.ca_file, "PEM of whom to trust");
  flags.AddText("tls-cert", &f.tls.cert_file, "PEM of the own certificate");
  flags.AddText("tls-key", &f.tls.key_file, "PEM of the own key");
  flags.AddChoice("log-level", &f.log.level,
                  {"debug", "info", "warn", "error", "off"}, "Log level");
  flags.AddChoice("log-format", &f.log.format, {"text", "json"}, "Log format");
}

void RegisterNodes(Flags& flags, TieringOptions& t) {
  flags.AddPeers("memory-nodes", &t.memory_nodes,
                 "host:port (--listen) of each memory node, comma-separated; "
                 "empty: all rows stay in T0");
  flags.AddText("map-dir", &t.map_dir,
                "Directory of the nodes' map sockets, the same as theirs; "
                "empty: nothing is mapped");
  flags.AddBytes("t0-bytes", &t.t0_bytes, "Size of T0");
  flags.AddDuration("lease", &t.lease,
                    {absl::Seconds(1), absl::Hours(24),
                     "the worker needs time to renew, and pages of a dead "
                     "worker stay taken for that long"},
                    "Wanted lease of sessions on nodes");
  flags.AddDuration("heartbeat", &t.heartbeat,
                    {absl::Milliseconds(1), absl::Hours(12),
                     "a node is lost after four silent heartbeats, and a "
                     "lease lasts two at least"},
                    "Between two pings of a node");
  flags.AddName("tenant", &t.tenant,
                "Whose sequences these are: letters, digits, '.', '_', '-'");
  flags.AddSwitch("spread", &t.spread,
                  "Use all nodes from the first stripe on");
}

}  // namespace

void WorkerFlags::Register(Flags& flags) {
  RegisterProcess(flags, *this);
  RegisterNodes(flags, engine.tiering);
  flags.AddInteger("max-sequences", &max_sequences_, 1, 1024,
                   "Sequences that run at once");
  flags.AddInteger("max-queue", &max_queue_, 1, 1 << 20,
                   "Requests that may wait");
  flags.AddInteger("threads", &threads_, 1, kMaxThreads,
                   "Threads of the CPU kernels; unless given, as many as the "
                   "process has CPUs, by affinity and cgroup quota");
  flags.AddInteger("seed", &seed_, 0, std::numeric_limits<int64_t>::max(),
                   "Seed of requests that name none");
  flags.AddChoice("kv-dtype", &kv_dtype_, {"bf16", "f32"}, "Type of KV rows");
  flags.AddRatio("hbm-ratio", &engine.placement.hbm_ratio,
                 "Share of the unprotected live tokens kept in T0");
  flags.AddRatio("hysteresis", &hysteresis_,
                 "A cold token comes back to T0 only for one whose attention, "
                 "added over all steps, is lower by more than this");
  flags.AddInteger("granularity", &granularity_, 1, 64,
                   "Tokens that move together: 64, 16 or 1");
  flags.AddInteger("interval", &interval_, 1, 1 << 20,
                   "Decode steps between two plans");
  flags.AddInteger("sinks", &sinks_, 0, 1 << 20,
                   "First generated tokens that stay in T0");
  flags.AddInteger("recent", &recent_, 0, 1 << 20,
                   "Youngest tokens that stay in T0");
  flags.AddChoice("prompt-placement", &prompt_placement_, {"t0", "any"},
                  "Whether the prompt may leave T0");
  flags.AddChoice("placement", &placement_,
                  {"attention", "age-normalised", "recency", "random"},
                  "What decides which tokens stay in T0");
  destruction_.Register(flags);
  flags.AddRatio("t2-ratio", &t2_ratio_,
                 "Share of the tokens outside T0 that nodes keep as T2");
  flags.AddInteger("t2-bits", &t2_bits_, 4, 8, "Bits of T2: 8 or 4");
  flags.AddChoice("cold", &cold_, {"auto", "map", "prefetch", "pushdown"},
                  "How cold rows reach attention");
  flags.AddChoice("exactness", &exactness_, {"bitwise", "rounding"},
                  "Whether all parties must compute the same bits");
  flags.AddInteger("replicas", &replicas_, 1, 2,
                   "Nodes that hold each page: 1 (2 in a later release)");
  flags.AddInteger("stripe", &stripe_, 64, 1 << 20,
                   "Positions of a stripe: 64 times a power of two");
  RegisterFaultFlags(flags, engine);
}

absl::Status WorkerFlags::Finish() {
  if (engine.device != "cpu" && engine.device != "cuda" &&
      engine.device != "fake") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device is \"", engine.device, "\", must be cpu or cuda"));
  }
  if (replicas_ != 1) return Later("replicas", absl::StrCat(replicas_));
  if (granularity_ != 64 && granularity_ != 16 && granularity_ != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--granularity is ", granularity_, ", must be 64, 16 or 1"));
  }
  engine.kv_dtype = kv_dtype_ == "f32" ? DType::kF32 : DType::kBf16;
  engine.max_sequences = static_cast<int>(max_sequences_);
  engine.max_queue = static_cast<int>(max_queue_);
  engine.threads = static_cast<int>(threads_);
  engine.seed = static_cast<uint64_t>(seed_);
  PlacementSettings& p = engine.placement;
  FARKV_ASSIGN_OR_RETURN(p.policy, ParsePlacementPolicy(placement_));
  p.granularity = static_cast<int32_t>(granularity_);
  p.interval = interval_;
  p.sinks = sinks_;
  p.recent = recent_;
  p.prompt_in_t0 = prompt_placement_ == "t0";
  p.hysteresis = (int64_t{hysteresis_} << 40) / kRatioOne;
  p.seed = engine.seed;
  FARKV_ASSIGN_OR_RETURN(engine.selection, destruction_.Selection());
  FARKV_ASSIGN_OR_RETURN(engine.destruction, destruction_.Finish(p));
  TieringOptions& t = engine.tiering;
  t.granularity = static_cast<int>(granularity_);
  t.stripe_tokens = static_cast<int>(stripe_);
  t.t2_ratio = t2_ratio_;
  t.t2_bits = static_cast<int>(t2_bits_);
  t.tls = tls;
  t.cold = cold_ == "map"        ? ColdMode::kMap
           : cold_ == "prefetch" ? ColdMode::kPrefetch
           : cold_ == "pushdown" ? ColdMode::kPushdown
                                 : ColdMode::kAuto;
  t.exactness = exactness_ == "bitwise" ? ExactnessMode::kBitwise
                                        : ExactnessMode::kRounding;
  if (t.worker_id.empty()) {
    t.worker_id =
        absl::StrCat("worker-", SessionId::Random().ToHex().substr(0, 8));
  }
  return engine.Validate();
}

}  // namespace farkv

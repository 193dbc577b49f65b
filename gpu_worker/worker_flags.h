// The worker's flags (DESIGN 11), copied once into options structs.
#ifndef FARKV_GPU_WORKER_WORKER_FLAGS_H_
#define FARKV_GPU_WORKER_WORKER_FLAGS_H_

#include <algorithm>
#include <string>

#include "common/process/cpu_count.h"
#include "common/process/flags.h"
#include "common/rpc/tls_options.h"
#include "common/telemetry/log.h"
#include "gpu_worker/destruction_flags.h"
#include "gpu_worker/engine/engine_options.h"

namespace farkv {

struct WorkerFlags {
  EngineOptions engine;
  std::string listen = "127.0.0.1:7501";
  std::string admin_listen = "127.0.0.1:7502";
  std::string metrics_listen = "127.0.0.1:7503";
  std::string port_file;
  TlsOptions tls;
  LogOptions log;
  absl::Duration drain_grace = absl::Seconds(30);

  // Names every flag in `flags`; this object must outlive it.
  void Register(Flags& flags);
  // Values that one flag alone cannot show to be wrong; fills in what depends
  // on others. UNIMPLEMENTED for settings of a later release.
  absl::Status Finish();

 private:
  static constexpr int64_t kMaxThreads = 1024;

  std::string kv_dtype_ = "bf16";
  std::string cold_ = "auto";
  std::string exactness_ = "bitwise";
  std::string prompt_placement_ = "t0";
  std::string placement_ = "attention";
  int64_t max_sequences_ = 8, max_queue_ = 64, seed_ = 0;
  int64_t threads_ = std::min<int64_t>(AvailableCpus(), kMaxThreads);
  int64_t granularity_ = 64, interval_ = 64, sinks_ = 4, recent_ = 128;
  int64_t stripe_ = 1024, replicas_ = 1, t2_bits_ = 8;
  int32_t t2_ratio_ = 0, hysteresis_ = 0;
  DestructionFlags destruction_;
};

// The flags that only the -faults program knows; nothing elsewhere.
void RegisterFaultFlags(Flags& flags, EngineOptions& options);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_WORKER_FLAGS_H_

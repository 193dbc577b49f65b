// Settings of the tiers, copied once from the worker's flags. Plain values.
#ifndef FARKV_GPU_WORKER_TIERING_TIERING_OPTIONS_H_
#define FARKV_GPU_WORKER_TIERING_TIERING_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/page/attend_limits.h"
#include "common/policy/placement.h"
#include "common/rpc/tls_options.h"

namespace farkv {

enum class ColdMode { kAuto, kMap, kPrefetch, kPushdown };
enum class ExactnessMode { kBitwise, kRounding };

struct TieringOptions {
  // host:port of the nodes' control planes; empty: everything stays in T0.
  std::vector<std::string> memory_nodes;
  std::string map_dir;  // directory of the nodes' map sockets; empty: no map
  std::string worker_id;
  std::string tenant = "default";
  uint64_t t0_bytes = uint64_t{1} << 30;
  int granularity = 64;  // positions of a T0 line: 64, 16 or 1
  // The worker's flag is kAuto, which depends on what is measured.
  ColdMode cold = ColdMode::kPrefetch;
  ExactnessMode exactness = ExactnessMode::kBitwise;
  int stripe_tokens = 1024;  // 64 times a power of two
  bool spread = false;       // all nodes from the first stripe on
  // Share of the tokens outside T0 that their nodes keep as T2, per 10,000.
  int32_t t2_ratio = 0;
  int t2_bits = 8;  // or 4
  absl::Duration lease = absl::Seconds(30);
  absl::Duration heartbeat = absl::Milliseconds(250);
  absl::Duration rpc_timeout = absl::Seconds(5);
  absl::Duration fetch_timeout = absl::Seconds(5);
  uint64_t staging_bytes = uint64_t{256} << 20;
  // The most that a step may fetch of one layer from one node; one with more is
  // refused, so that its sequences run apart.
  uint64_t max_layer_fetch_bytes = uint64_t{896} << 20;
  // Of the leaves that one attend request makes a node compute; nodes refuse
  // more than the default.
  uint64_t max_attend_leaf_bytes = kMaxAttendLeafBytes;
  // Layers whose cold rows may be on their way ahead of the computing one.
  int prefetch_layers = 2;
  // Only the -faults programs set it: what the fault decorator injects.
  std::string fault_spec;
  // Test hook of the exactness bench (-faults only): rows are not checked.
  bool skip_row_checks = false;
  TlsOptions tls;

  // What the transport to one node has to have room for: the rows of a layer,
  // those that are fetched ahead or promoted meanwhile, with what names and
  // checks them, and results of attention. With less a layer's last fetches
  // would be refused for memory that only the end of its step frees.
  uint64_t MaxIncomingBytes() const;

  // INVALID_ARGUMENT naming the flag, its value and the allowed range.
  absl::Status Validate() const;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_TIERING_OPTIONS_H_

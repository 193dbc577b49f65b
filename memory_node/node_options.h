// Options of a memory node, as its flags give them (DESIGN 11).
#ifndef FARKV_MEMORY_NODE_NODE_OPTIONS_H_
#define FARKV_MEMORY_NODE_NODE_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/page/attend_limits.h"
#include "common/process/flags.h"
#include "common/rpc/tls_options.h"
#include "common/telemetry/log.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

struct NodeOptions {
  // Names the node to workers and its map socket; default: host name and pid.
  std::string node_id;
  std::string listen = "127.0.0.1:7401";          // control plane
  std::string admin_listen = "127.0.0.1:7402";    // AdminService
  std::string metrics_listen = "127.0.0.1:7403";  // HTTP
  std::string data_listen = "127.0.0.1:0";        // data plane
  // Host that workers connect their data plane to; default: the one of
  // data_listen, or the host name when that listens on every address.
  std::string data_advertise;
  std::string data_port_range;  // "9000-9100" for the transport's own ports
  std::string data_device;      // interfaces of the transport; empty: chosen
  std::string map_dir;          // empty: no map is offered
  PagePoolOptions pool;         // T1
  uint64_t t2_bytes = 0;        // 0: no T2 pool, pages stay in T1
  bool huge_pages = true;
  int64_t numa_node = -1;  // -1: not bound
  int64_t threads = 4;     // copy rows, handle messages
  absl::Duration max_lease = absl::Seconds(30);
  // Of the leaves of one attend request.
  uint64_t max_attend_leaf_bytes = kMaxAttendLeafBytes;
  absl::Duration drain_grace = absl::Seconds(10);
  uint64_t scrub_rate = uint64_t{1} << 30;  // bytes per second of Verify
  TlsOptions tls;
  LogOptions log;
  std::string port_file;
  // The effective configuration by flag name, shown by AdminService.
  std::map<std::string, std::string> config;

  // The same as `pool` but for its size.
  PagePoolOptions T2Pool() const;

  void Register(Flags& flags);
  // INVALID_ARGUMENT naming flag and value; fills in the defaults that depend
  // on the machine.
  absl::Status Finish();
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_NODE_OPTIONS_H_

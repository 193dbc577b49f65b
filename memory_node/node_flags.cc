#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/address.h"
#include "common/process/flag_checks.h"
#include "memory_node/node_options.h"

namespace farkv {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// Empty is the default; anything else has to pass `check`.
void AddChecked(Flags& flags, const std::string& name, std::string* value,
                absl::Status (*check)(const std::string&),
                const std::string& help) {
  flags.Add(
      name,
      [value, check](const std::string& text) {
        if (!text.empty()) FARKV_RETURN_IF_ERROR(check(text));
        *value = text;
        return absl::OkStatus();
      },
      [value] { return *value; }, help);
}

// -1: not bound. The kernel lists what the machine has.
absl::Status CheckNumaNode(int64_t node) {
  const std::filesystem::path all = "/sys/devices/system/node";
  std::error_code error;
  if (node < 0 || !std::filesystem::exists(all, error) ||
      std::filesystem::exists(all / absl::StrCat("node", node), error)) {
    return absl::OkStatus();
  }
  std::string online;
  std::getline(std::ifstream(all / "online") >> std::ws, online);
  return absl::InvalidArgumentError(
      absl::StrCat("--numa-node: this machine has no NUMA node ", node,
                   "; it has ", online, ", and -1 binds to none"));
}

bool ListensEverywhere(const std::string& host) {
  return host == "0.0.0.0" || host == "::" || host == "*";
}

void RegisterListeners(Flags& flags, NodeOptions& o) {
  flags.AddAddress("listen", &o.listen, "Control plane (gRPC)");
  flags.AddAddress("admin-listen", &o.admin_listen, "Admin API (gRPC)");
  flags.AddAddress("metrics-listen", &o.metrics_listen,
                   "/metrics, /healthz, /readyz");
  flags.AddAddress("data-listen", &o.data_listen, "Data plane");
  AddChecked(flags, "data-advertise", &o.data_advertise, CheckHost,
             "Host, without port, that workers connect the data plane to; "
             "empty: that of --data-listen, or the host name");
  AddChecked(
      flags, "data-port-range", &o.data_port_range,
      [](const std::string& text) { return ParsePortRange(text).status(); },
      "Ports of the transport's own sockets, as 9000-9100; empty: any. The "
      "port of --data-listen is apart from it");
  AddChecked(flags, "data-device", &o.data_device, CheckInterfaces,
             "Network interfaces of the data plane, comma-separated; empty: "
             "the loopback when --data-listen is on it, else all");
  flags.AddText("tls-ca", &o.tls.ca_file, "PEM of whom to trust");
  flags.AddText("tls-cert", &o.tls.cert_file, "PEM of the own certificate");
  flags.AddText("tls-key", &o.tls.key_file, "PEM of the own key");
}

}  // namespace

void NodeOptions::Register(Flags& flags) {
  AddChecked(flags, "node-id", &node_id, CheckName,
             "Name of the node, of letters, digits, '.', '_' and '-'; empty: "
             "host and pid");
  RegisterListeners(flags, *this);
  flags.AddText("map-dir", &map_dir,
                "Directory for the map socket; empty: no map is offered");
  flags.AddBytes("t1-bytes", &pool.capacity_bytes, "Size of the T1 pool");
  flags.AddBytes(
      "t2-bytes", &t2_bytes,
      "Size of the T2 pool, of compressed pages; 0B: none, every page "
      "stays in T1");
  flags.AddSwitch("huge-pages", &huge_pages, "Try huge pages first");
  flags.AddInteger("numa-node", &numa_node, -1, 1023,
                   "NUMA node of the pool; -1: not bound");
  flags.AddInteger("threads", &threads, 1, 1024,
                   "Threads that check messages and copy rows");
  flags.AddPositiveRatio(
      "high-watermark", &pool.high_watermark,
      "Share of the pool above which reservations are refused");
  flags.AddDuration("max-lease", &max_lease,
                    {absl::Seconds(1), absl::Hours(24),
                     "a worker needs time to renew, and the pages of a dead "
                     "one stay taken for that long"},
                    "Longest lease that is granted");
  flags.AddBytes("tenant-quota", &pool.tenant_quota_bytes,
                 "Bytes that one tenant may hold in each pool; 0B: no bound");
  flags.AddDuration("drain-grace", &drain_grace,
                    {absl::Milliseconds(1), absl::Hours(24),
                     "after SIGTERM the process is expected to end"},
                    "How long sessions may go on after SIGTERM");
  flags.AddBytes("scrub-rate", &scrub_rate,
                 "Bytes per second that Verify reads at most");
  flags.AddText("port-file", &port_file,
                "JSON file with the bound ports, written when ready");
  flags.AddChoice("log-level", &log.level,
                  {"debug", "info", "warn", "error", "off"}, "Log level");
  flags.AddChoice("log-format", &log.format, {"text", "json"}, "Log format");
}

PagePoolOptions NodeOptions::T2Pool() const {
  PagePoolOptions options = pool;
  options.capacity_bytes = t2_bytes;
  return options;
}

absl::Status NodeOptions::Finish() {
  if (scrub_rate == 0) {
    return absl::InvalidArgumentError("--scrub-rate is 0, must be positive");
  }
  if (absl::Status status = pool.Validate(); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--t1-bytes: ", status.message()));
  }
  if (absl::Status status = T2Pool().Validate();
      t2_bytes != 0 && !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--t2-bytes: ", status.message()));
  }
  FARKV_RETURN_IF_ERROR(CheckNumaNode(numa_node));
  if (node_id.empty()) node_id = absl::StrCat(HostName(), "-", getpid());
  if (data_advertise.empty()) {
    FARKV_ASSIGN_OR_RETURN(const Address data, ParseAddress(data_listen));
    data_advertise = ListensEverywhere(data.host) ? HostName() : data.host;
  }
  return absl::OkStatus();
}

}  // namespace farkv

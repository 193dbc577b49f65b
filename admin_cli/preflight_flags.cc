#include "absl/strings/str_cat.h"
#include "admin_cli/bad_flag.h"
#include "admin_cli/command_line.h"
#include "admin_cli/commands.h"
#include "admin_cli/tables.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/process/address.h"
#include "common/process/flag_checks.h"

namespace farkv {
namespace {

// As the programs have them by default.
std::vector<std::string> DefaultListeners(const std::string& role) {
  std::vector<std::string> listeners;
  if (role != "worker") {
    listeners = {"127.0.0.1:7401", "127.0.0.1:7402", "127.0.0.1:7403"};
  }
  if (role != "node") {
    for (const char* address :
         {"127.0.0.1:7501", "127.0.0.1:7502", "127.0.0.1:7503"}) {
      listeners.emplace_back(address);
    }
  }
  return listeners;
}

absl::Status ReadListeners(const PreflightArguments& typed,
                           PreflightOptions& options) {
  if (typed.listen.empty()) {
    options.listen = DefaultListeners(typed.role);
    return absl::OkStatus();
  }
  if (typed.listen == "none") return absl::OkStatus();
  auto list = ParseList(typed.listen);
  if (!list.ok()) return BadFlag("--listen", list.status());
  for (const std::string& address : *list) {
    if (const auto parsed = ParseAddress(address); !parsed.ok()) {
      return BadFlag("--listen", parsed.status());
    }
  }
  options.listen = *std::move(list);
  return absl::OkStatus();
}

}  // namespace

absl::Status Finish(const PreflightArguments& typed,
                    PreflightOptions& options) {
  const auto t1 = ParseBytes(typed.t1_bytes);
  if (!t1.ok()) return BadFlag("--t1-bytes", t1.status());
  const auto t2 = ParseBytes(typed.t2_bytes);
  if (!t2.ok()) return BadFlag("--t2-bytes", t2.status());
  if (*t1 > UINT64_MAX - *t2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--t2-bytes: ", typed.t1_bytes, " and ", typed.t2_bytes,
                     " together are too many"));
  }
  options.pool_bytes = typed.role == "worker" ? 0 : *t1 + *t2;
  if (!options.node_id.empty()) {
    if (const auto s = CheckName(options.node_id); !s.ok()) {
      return BadFlag("--node-id", s);
    }
  }
  if (!options.data_device.empty()) {
    if (const auto s = CheckInterfaces(options.data_device); !s.ok()) {
      return BadFlag("--data-device", s);
    }
  }
  if (!options.map_dir.empty() && options.map_dir.front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--map-dir: '", options.map_dir, "' is no absolute path"));
  }
  return ReadListeners(typed, options);
}

void AddPreflight(CLI::App& app, Invocation& v) {
  PreflightArguments& typed = v.preflight_typed;
  PreflightOptions& o = v.preflight;
  CLI::App* preflight = app.add_subcommand(
      "preflight", "Checks this machine before a node or worker runs on it");
  preflight->fallthrough();
  preflight->add_option("--role", typed.role, "What is going to run")
      ->check(CLI::IsMember({"node", "worker", "all"}))
      ->capture_default_str();
  preflight->add_option("--t1-bytes", typed.t1_bytes, "As the node's")
      ->capture_default_str();
  preflight->add_option("--t2-bytes", typed.t2_bytes, "As the node's")
      ->capture_default_str();
  preflight->add_option("--numa-node", o.numa_node, "As the node's")
      ->check(CLI::Range(-1, 1023))
      ->capture_default_str();
  preflight->add_option("--map-dir", o.map_dir, "As the programs'");
  preflight->add_option("--node-id", o.node_id, "As the node's");
  preflight->add_option("--data-device", o.data_device, "As the node's");
  preflight->add_option("--listen", typed.listen,
                        "Addresses that must be free, comma-separated, or "
                        "none; default: those of the programs");
  preflight->add_flag("--rdma", o.rdma,
                      "RDMA is wanted: its lack is a failure");
  preflight->callback([&v] {
    v.table = FindingOutput;
    v.finish = [&v] { return Finish(v.preflight_typed, v.preflight); };
    v.run = [&v] { return RunPreflight(v.options, v.preflight); };
  });
}

}  // namespace farkv

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "admin_cli/preflight.h"

namespace farkv {
namespace {

using Level = Finding::Level;

constexpr const char* kDevices = "/sys/class/infiniband";
constexpr const char* kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";

struct Port {
  std::string name;  // "mlx5_0:1", as UCX_NET_DEVICES has it
  bool active = false;
  bool ethernet = false;
  std::vector<std::string> gids;     // indices that are set
  std::vector<std::string> v2_gids;  // those of them of RoCE v2
};

Port ReadPort(const PreflightSystem& system, const std::string& device,
              const std::string& number) {
  const std::string folder =
      absl::StrCat(kDevices, "/", device, "/ports/", number);
  Port port;
  port.name = absl::StrCat(device, ":", number);
  port.active =
      absl::StrContains(ReadFact(system, folder + "/state"), "ACTIVE");
  port.ethernet = ReadFact(system, folder + "/link_layer") == "Ethernet";
  for (const auto& index : ListFacts(system, folder + "/gids")) {
    const std::string gid = ReadFact(system, folder + "/gids/" + index);
    if (gid.empty() || gid == kNoGid) continue;
    port.gids.push_back(index);
    const std::string type =
        ReadFact(system, folder + "/gid_attrs/types/" + index);
    if (absl::StrContains(type, "RoCE v2")) port.v2_gids.push_back(index);
  }
  return port;
}

Finding PortFinding(const Port& port, Level bad) {
  Finding finding{
      "rdma", Level::kOk,
      absl::StrCat(port.name, port.active ? " active" : " not active",
                   port.ethernet ? ", Ethernet" : ", InfiniBand"),
      ""};
  if (!port.v2_gids.empty()) {
    absl::StrAppend(&finding.found, ", RoCE v2 GIDs ",
                    absl::StrJoin(port.v2_gids, " "));
  }
  if (!port.active) {
    finding.level = Level::kWarn;
    finding.fix =
        "cable, switch port or subnet manager; else name other "
        "interfaces in --data-device";
  } else if (port.gids.empty()) {
    finding.level = bad;
    absl::StrAppend(&finding.found, ", no GID");
    finding.fix =
        "give the interface an IP address; in a container, use one "
        "whose network has the device";
  } else if (port.ethernet && port.v2_gids.empty()) {
    finding.level = Level::kWarn;
    finding.fix =
        "no RoCE v2 GID: it will not be routed; check the address of "
        "the interface and UCX_IB_GID_INDEX";
  }
  return finding;
}

// `bad`: the level of what keeps RDMA from working.
void CheckRdma(Level bad, const PreflightSystem& system,
               std::vector<Finding>& findings) {
  const std::vector<std::string> devices = ListFacts(system, kDevices);
  if (devices.empty()) {
    const bool wanted = bad == Level::kFail;
    findings.push_back({"rdma", wanted ? bad : Level::kOk,
                        "no device; rows go over TCP or the map",
                        wanted ? "load the driver of the adapter" : ""});
    return;
  }
  const auto verbs = ListFacts(system, "/dev/infiniband");
  const bool usable = std::any_of(
      verbs.begin(), verbs.end(),
      [](const std::string& name) { return absl::StartsWith(name, "uverbs"); });
  if (!usable) {
    findings.push_back(
        {"rdma", bad,
         absl::StrCat("there is ", absl::StrJoin(devices, ", "),
                      " but no /dev/infiniband/uverbs*"),
         "load ib_uverbs; in a container, ask the device plugin for the "
         "device"});
  }
  for (const auto& device : devices) {
    const std::string ports = absl::StrCat(kDevices, "/", device, "/ports");
    for (const auto& number : ListFacts(system, ports)) {
      findings.push_back(PortFinding(ReadPort(system, device, number), bad));
    }
  }
}

void CheckUcx(bool rdma, const PreflightSystem& system,
              std::vector<Finding>& findings) {
  std::vector<std::string> modules;
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/ucx", "/usr/lib/aarch64-linux-gnu/ucx",
        "/usr/lib64/ucx", "/usr/lib/ucx"}) {
    for (const std::string& name : ListFacts(system, folder)) {
      if (absl::StartsWith(name, "libuct_") && absl::EndsWith(name, ".so.0")) {
        absl::string_view transport = name;
        absl::ConsumePrefix(&transport, "libuct_");
        absl::ConsumeSuffix(&transport, ".so.0");
        modules.emplace_back(transport);
      }
    }
  }
  const bool has_ib =
      std::find(modules.begin(), modules.end(), "ib") != modules.end();
  Finding finding{"ucx", Level::kOk,
                  absl::StrCat("tcp", modules.empty() ? "" : ", modules ",
                               absl::StrJoin(modules, " ")),
                  ""};
  const auto wanted = system.environment("UCX_TLS");
  if (rdma) {
    finding.level = Level::kFail;
    finding.fix = has_ib ? "this release moves rows over TCP and the map only"
                         : "UCX has no module libuct_ib: install UCX with "
                           "verbs; this release moves rows over TCP and the "
                           "map only";
  } else if (wanted) {
    finding.level = Level::kWarn;
    absl::StrAppend(&finding.found, "; UCX_TLS=", *wanted);
    finding.fix = "unset it: the programs set UCX's transports themselves";
  }
  findings.push_back(std::move(finding));
}

// Each of a comma-separated list must be there; "mlx5_0:1" is a port.
void CheckDevices(const std::string& wanted, const PreflightSystem& system,
                  std::vector<Finding>& findings) {
  std::vector<std::string> there = ListFacts(system, "/sys/class/net");
  const auto rdma = ListFacts(system, kDevices);
  there.insert(there.end(), rdma.begin(), rdma.end());
  std::vector<std::string> missing;
  for (const std::string& name :
       std::vector<std::string>(absl::StrSplit(wanted, ','))) {
    const std::string device = name.substr(0, name.find(':'));
    if (std::find(there.begin(), there.end(), device) == there.end()) {
      missing.push_back(name);
    }
  }
  if (missing.empty()) {
    findings.push_back({"data-device", Level::kOk, wanted, ""});
    return;
  }
  findings.push_back(
      {"data-device", Level::kFail,
       absl::StrCat(absl::StrJoin(missing, ", "), " is not among ",
                    absl::StrJoin(there, ", ")),
       "name interfaces of this machine"});
}

}  // namespace

void CheckNetwork(const PreflightOptions& options,
                  const PreflightSystem& system,
                  std::vector<Finding>& findings) {
  CheckRdma(options.rdma ? Level::kFail : Level::kWarn, system, findings);
  CheckUcx(options.rdma, system, findings);
  if (!options.data_device.empty()) {
    CheckDevices(options.data_device, system, findings);
  }
  for (const std::string& address : options.listen) {
    const absl::Status status = system.try_listen(address);
    Finding finding{"port", Level::kOk, address + " is free", ""};
    if (!status.ok()) {
      finding.level = Level::kFail;
      finding.found =
          absl::StrCat(address, ": ", std::string(status.message()));
      finding.fix =
          "end who has it (ss -ltnp), or use another --listen, "
          "--admin-listen, --metrics-listen or --data-listen";
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace farkv

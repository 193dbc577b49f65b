// farkv-memory-node: holds the log of sequences in DDR and serves it to
// workers.
#include <cstdlib>
#include <iostream>

#include "common/process/environment_names.h"
#include "common/process/flags.h"
#include "common/process/port_file.h"
#include "common/process/signals.h"
#include "common/process/version.h"
#include "common/telemetry/log.h"
#include "common/transport/ucx/ucx_transport.h"
#include "memory_node/fault_hooks.h"
#include "memory_node/node.h"
#include "memory_node/node_options.h"

namespace {

int Report(const farkv::FaultHooks& faults, const absl::Status& status) {
  std::cerr << faults.program() << ": " << status.message() << "\n";
  // A setting of a later release is one that this program does not take.
  const bool usage =
      absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
  return usage ? farkv::Flags::kUsageError : EXIT_FAILURE;
}

farkv::NodeTransportFactory UcxFactory(const farkv::NodeOptions& options,
                                       const farkv::FaultHooks& faults) {
  farkv::UcxOptions ucx;
  ucx.net_devices = options.data_device;
  ucx.port_range = options.data_port_range;
  const auto make = [ucx](farkv::TransportOptions transport) {
    return farkv::CreateUcxTransport(std::move(transport), ucx);
  };
  return [make, &faults](farkv::TransportOptions transport,
                         farkv::Directory& directory) {
    return faults.CreateTransport(std::move(transport), make, directory);
  };
}

absl::Status Announce(const farkv::Node& node,
                      farkv::PortFileWriter& port_file) {
  const farkv::NodePorts& ports = node.ports();
  farkv::PortFile file;
  file.numbers = {{"listen", ports.listen},
                  {"admin", ports.admin},
                  {"metrics", ports.metrics},
                  {"data", ports.data},
                  {"epoch", node.epoch().value}};
  file.texts = {{"node_id", node.node_id()}};
  // Whoever has read the ports may look for this line.
  spdlog::info(
      "ready: {} in epoch {}; control plane on port {}, data on {}, "
      "admin on {}, metrics on {}",
      node.node_id(), node.epoch().value, ports.listen, ports.data, ports.admin,
      ports.metrics);
  return port_file.Publish(file);
}

}  // namespace

int main(int argc, char** argv) {
  farkv::ShutdownSignals signals;
  farkv::NodeOptions options;
  farkv::FaultHooks faults;
  farkv::Flags flags({faults.program(),
                      "Holds cold KV rows in DDR and serves them to workers.",
                      farkv::SoftwareVersion()});
  options.Register(flags);
  faults.Register(flags);
  if (const auto code = flags.Parse(argc, argv)) return *code;
  if (auto s = farkv::SetUpLogging(options.log, faults.program()); !s.ok()) {
    return Report(faults, s);
  }
  if (auto s = options.Finish(); !s.ok()) return Report(faults, s);
  for (const auto& warning :
       farkv::VariableWarnings(farkv::EnvironmentVariables())) {
    spdlog::warn("{}", warning);
  }
  options.config = flags.Effective();
  for (const auto& [name, value] : options.config) {
    spdlog::info("config {}={}", name, value);
  }
  auto port_file = farkv::PortFileWriter::Open(options.port_file);
  if (!port_file.ok()) return Report(faults, port_file.status());
  // It makes a socket file; from here on a signal removes it first.
  signals.DrainFromNow();
  auto node = farkv::Node::Start(options, UcxFactory(options, faults),
                                 [&signals] { signals.Interrupt(); });
  if (!node.ok()) return Report(faults, node.status());

  // It prefaults by itself, which may take long; main waits for signals.
  int signal = signals.Wait();
  if (signal == 0) {  // prefaulted, or not to be had
    if (auto s = (*node)->BeginServing(); !s.ok()) return Report(faults, s);
    if (auto s = Announce(**node, *port_file); !s.ok()) {
      return Report(faults, s);
    }
    signal = signals.Wait();
  }
  spdlog::info("signal {}: draining", signal);
  const size_t left = (*node)->Drain();
  if (left > 0) spdlog::warn("{} sessions are left behind", left);
  node->reset();
  spdlog::info("stopped");
  return EXIT_SUCCESS;
}

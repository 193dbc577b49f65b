// farkv-worker: keeps the hot rows of its sequences in T0, generates, and
// serves the Generate API.
#include <cstdlib>
#include <iostream>

#include "common/process/environment_names.h"
#include "common/process/flags.h"
#include "common/process/port_file.h"
#include "common/process/signals.h"
#include "common/process/version.h"
#include "common/telemetry/log.h"
#include "gpu_worker/worker.h"

namespace {

int Report(const absl::Status& status) {
  std::cerr << "farkv-worker: " << status.message() << "\n";
  // A setting of a later release is one that this program does not take.
  const bool usage =
      absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
  return usage ? farkv::Flags::kUsageError : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  farkv::ShutdownSignals signals;
  farkv::WorkerFlags values;
  farkv::Flags flags({"farkv-worker",
                      "Generates with the hot rows in T0 and the rest on "
                      "memory nodes.",
                      farkv::SoftwareVersion()});
  values.Register(flags);
  if (const auto code = flags.Parse(argc, argv)) return *code;
  if (auto s = farkv::SetUpLogging(values.log, "farkv-worker"); !s.ok()) {
    return Report(s);
  }
  if (auto s = values.Finish(); !s.ok()) return Report(s);
  for (const auto& warning :
       farkv::VariableWarnings(farkv::EnvironmentVariables())) {
    spdlog::warn("{}", warning);
  }
  const auto config = flags.Effective();
  for (const auto& [name, value] : config) {
    spdlog::info("config {}={}", name, value);
  }
  auto port_file = farkv::PortFileWriter::Open(values.port_file);
  if (!port_file.ok()) return Report(port_file.status());
  // Nodes keep what a worker has opened; from then on a signal closes it first.
  auto worker = farkv::Worker::Start(std::move(values), config,
                                     [&signals] { signals.DrainFromNow(); });
  if (!worker.ok()) return Report(worker.status());
  farkv::PortFile ports;
  ports.numbers = {{"listen", (*worker)->port()},
                   {"admin", (*worker)->admin_port()},
                   {"metrics", (*worker)->metrics_port()}};
  ports.texts = {{"worker_id", (*worker)->worker_id()}};
  spdlog::info("ready: Generate API on port {}, admin on {}, metrics on {}",
               (*worker)->port(), (*worker)->admin_port(),
               (*worker)->metrics_port());
  // Whoever has read the ports may expect the line above.
  if (auto s = port_file->Publish(ports); !s.ok()) return Report(s);
  const int signal = signals.Wait();
  spdlog::info("signal {}: draining", signal);
  (*worker)->DrainAndStop();
  spdlog::info("stopped");
  return EXIT_SUCCESS;
}

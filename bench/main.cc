// farkv-bench SUBCOMMAND [OPTIONS]: JSON lines on stdout, progress on stderr.
// Exit 0 when it ran, 1 when it could not or a check failed, CLI11's codes for
// a wrong command line, 128 + n for signal n.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "bench/node_cluster.h"
#include "bench/subcommands.h"
#include "common/telemetry/log.h"

namespace farkv::bench {
namespace {

constexpr void (*kSubcommands[])(CLI::App&, Run&) = {
    RegisterAccuracy, RegisterAttention, RegisterDecode,   RegisterExactness,
    RegisterMatMul,   RegisterPlan,      RegisterReasoner, RegisterThroughput,
};

// SIGTERM and SIGINT end the nodes, too. Before any other thread starts: those
// inherit that the signals are blocked, and no handler ever runs.
void EndNodesOnSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    NodeCluster::KillAll();
    _exit(128 + signal);
  }).detach();
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Measures parts of FarKV as ratios to yardsticks taken in the same run",
      "farkv-bench");
  app.require_subcommand(1);
  Run chosen;
  for (const auto add : kSubcommands) add(app, chosen);
  CLI11_PARSE(app, argc, argv);
  EndNodesOnSignals();
  // The engine's log goes to stderr; stdout is for JSON lines alone.
  SetUpLogging({.level = "warn"}, "farkv-bench").IgnoreError();
  if (const absl::Status status = chosen(); !status.ok()) {
    std::fprintf(stderr, "farkv-bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace farkv::bench

int main(int argc, char** argv) { return farkv::bench::Main(argc, argv); }

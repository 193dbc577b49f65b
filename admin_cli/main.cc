// farkvctl: shows and drives a FarKV installation from a terminal.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "admin_cli/command_line.h"
#include "admin_cli/options.h"
#include "admin_cli/watch.h"
#include "common/base/text_checks.h"
#include "common/process/environment_names.h"
#include "common/process/version.h"
#include "common/rpc/grpc_log.h"

namespace farkv {
namespace {

// CLI11 would take the next argument as the value of "--name=". It wants them
// from the last to the first.
std::vector<std::string> Reversed(int argc, char** argv) {
  std::vector<std::string> all;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (argument.starts_with("--") && argument.ends_with("=")) {
      all.emplace_back();
      argument.pop_back();
    }
    all.push_back(std::move(argument));
  }
  return all;
}

int Refuse(const std::string& why) {
  std::cerr << "error: " << why << "\nTry 'farkvctl --help'.\n";
  return kExitUsage;
}

int Refuse(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  const bool unnamed =
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!unnamed || rest.empty()) return Refuse(error.what());
  return Refuse(absl::StrCat(error.what(), "; ", ShownText(rest.front()),
                             " is not known here"));
}

int Main(int argc, char** argv) {
  Invocation v;
  CLI::App app("Shows and drives a FarKV installation.", "farkvctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", SoftwareVersion());
  app.footer(
      "Every address is host:port; FARKV_NODES, FARKV_WORKERS and FARKV_WORKER "
      "stand in for --nodes, --workers and --worker.\n"
      "Exit codes: 0 ok, 1 error, 2 usage, 3 some peers failed, 4 none "
      "could be reached, or a check failed.");
  AddCommands(app, v);
  try {
    app.parse(Reversed(argc, argv));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Refuse(app, error);
  }
  const absl::Status status = FinishInvocation(v);
  if (absl::IsInvalidArgument(status)) {
    return Refuse(std::string(status.message()));
  }
  if (!status.ok()) {
    std::cerr << "error: " << status.message() << "\n";
    return kExitError;
  }
  for (const auto& warning : VariableWarnings(EnvironmentVariables())) {
    std::cerr << "warning: " << warning << "\n";
  }
  return RunWatched(v.options.watch, isatty(STDOUT_FILENO) != 0, std::cout,
                    v.run, absl::SleepFor);
}

}  // namespace
}  // namespace farkv

int main(int argc, char** argv) {
  farkv::DropGrpcLog();
  return farkv::Main(argc, argv);
}

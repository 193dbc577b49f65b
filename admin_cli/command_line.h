// farkvctl's command line: which commands and flags there are, and what each
// one runs.
#ifndef FARKV_ADMIN_CLI_COMMAND_LINE_H_
#define FARKV_ADMIN_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "admin_cli/arguments.h"
#include "admin_cli/options.h"
#include "admin_cli/output.h"
#include "admin_cli/plan.h"
#include "admin_cli/preflight.h"

namespace farkv {

// What the command line asked for; parsing sets the functions of the chosen
// command.
struct Invocation {
  CliOptions options;
  GenerateOptions generate;
  CommonArguments common_typed;
  GenerateArguments generate_typed;
  PreflightOptions preflight;
  PreflightArguments preflight_typed;
  PlanOptions plan;
  PlanArguments plan_typed;
  PageOptions pages;
  std::string sequence;
  std::string pool;  // id or address of its node
  std::string session;
  std::vector<std::string> drained;  // admin addresses
  bool no_wait = false;
  bool yes = false;
  // What the command's rows look like; empty: it has none to sort or repeat.
  std::function<Output()> table;
  std::function<absl::Status()> finish;  // checks of the command; may be empty
  std::function<int()> run;
};

// Fills in `app`, which must not outlive `invocation`.
void AddCommands(CLI::App& app, Invocation& invocation);
// Four of them.
void AddGenerate(CLI::App& app, Invocation& invocation);
void AddPreflight(CLI::App& app, Invocation& invocation);
void AddPlan(CLI::App& app, Invocation& invocation);
void AddTop(CLI::App& app, Invocation& invocation);

// Checks everything that was typed, after parsing. INVALID_ARGUMENT "--FLAG:
// what is wrong with which value".
absl::Status FinishInvocation(Invocation& invocation);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_COMMAND_LINE_H_

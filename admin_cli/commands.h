// The commands of farkvctl. Each prints its answer to stdout, errors to
// stderr, and returns the exit code.
#ifndef FARKV_ADMIN_CLI_COMMANDS_H_
#define FARKV_ADMIN_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "admin_cli/options.h"
#include "admin_cli/plan.h"
#include "admin_cli/preflight.h"

namespace farkv {

int GetNodes(const CliOptions& options);
int GetWorkers(const CliOptions& options);
int GetPools(const CliOptions& options);
int GetSessions(const CliOptions& options);
// Of sessions, those that end first at the top.
int GetLeases(const CliOptions& options);
int GetSequences(const CliOptions& options);
// Pages of nodes that are not free, and why.
int GetPages(const CliOptions& options, const PageOptions& wanted);
int GetPeers(const CliOptions& options);
// Decisions of nodes and workers, newest first. `session` as `get` shows it, or
// the whole id, in hex; empty: of all sessions.
int GetEvictions(const CliOptions& options, const std::string& session);
// Has nodes compute their decisions again; an error when one comes out another.
int ReplayEvictions(const CliOptions& options, const std::string& session);
// `sequence` is a request id or a session as `get` shows it.
int DescribeSequence(const CliOptions& options, const std::string& sequence);
// The pools of the node with the id or admin address `name`, and who holds
// their pages until when.
int DescribePool(const CliOptions& options, const std::string& name);
// The effective settings of nodes and workers.
int ViewConfig(const CliOptions& options);

// Asks the processes at `addresses`, one after the other, to take no new
// sessions or requests. With `wait` each is followed until nothing is left; one
// that is not done within the timeout is an error and goes on draining.
int Drain(const CliOptions& options, const std::vector<std::string>& addresses,
          bool wait);
int Undrain(const CliOptions& options,
            const std::vector<std::string>& addresses);
// Has the nodes check the rows of their pages; `session` as in GetEvictions.
// Unhealthy when a checksum is wrong.
int Verify(const CliOptions& options, const std::string& session);

// Unhealthy when a check of this machine fails.
int RunPreflight(const CliOptions& options, const PreflightOptions& wanted);

// Prints what Finish() has found to be possible.
int RunPlan(const CliOptions& options, const PlanOptions& wanted);

// Nodes, pools and workers with their rates, again and again: on a terminal
// full-screen, else as a stream. The exit code of the last round.
int RunTop(const CliOptions& options);

int Generate(const CliOptions& options, const GenerateOptions& generate);
int PrintVersion(const CliOptions& options);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_COMMANDS_H_

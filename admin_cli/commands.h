// The commands of farkvctl. Each prints its answer to stdout, errors to
// stderr, and returns the exit code.
#ifndef FARKV_ADMIN_CLI_COMMANDS_H_
#define FARKV_ADMIN_CLI_COMMANDS_H_

#include <string>

#include "admin_cli/options.h"

namespace farkv {

int GetNodes(const CliOptions& options);
int GetPools(const CliOptions& options);
int GetSessions(const CliOptions& options);
int GetSequences(const CliOptions& options);
// Decisions of nodes, newest first. `session` as `get` shows it, or the whole
// id, in hex; empty: of all sessions.
int GetEvictions(const CliOptions& options, const std::string& session);
// `sequence` is a request id or a session as `get` shows it.
int DescribeSequence(const CliOptions& options, const std::string& sequence);
int Generate(const CliOptions& options, const GenerateOptions& generate);
int PrintVersion(const CliOptions& options);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_COMMANDS_H_

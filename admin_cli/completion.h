// Scripts by which shells complete farkvctl's commands, flags and the values
// of flags that have a fixed set. Made from the command line itself, so that
// they know all there is. Pure.
#ifndef FARKV_ADMIN_CLI_COMPLETION_H_
#define FARKV_ADMIN_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>

namespace farkv {

// `shell` is "bash", "zsh" or "fish".
std::string CompletionScript(const CLI::App& app, const std::string& shell);

// How to load the script of `shell`.
std::string CompletionHint(const std::string& shell);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_COMPLETION_H_

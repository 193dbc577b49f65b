// Which environment variables FarKV's programs know, and what is said of one
// that is misspelt: without it a setting would be missed in silence. Pure, but
// for reading the environment.
#ifndef FARKV_COMMON_PROCESS_ENVIRONMENT_NAMES_H_
#define FARKV_COMMON_PROCESS_ENVIRONMENT_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace farkv {

// The twin of a flag of any of the programs, whichever of them asks.
bool IsFarkvVariable(absl::string_view name);

// Names of all variables of this process.
std::vector<std::string> EnvironmentVariables();

// One sentence for each of `names` that begins with FARKV_ and is nobody's,
// with the name that was meant where one is near. Variables that Kubernetes
// makes of Services, and those of scripts and tests, are passed over.
std::vector<std::string> VariableWarnings(
    const std::vector<std::string>& names);

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_ENVIRONMENT_NAMES_H_

// A JSON document as YAML 1.1 in block style, which kubectl's users expect.
// Pure.
#ifndef FARKV_ADMIN_CLI_YAML_H_
#define FARKV_ADMIN_CLI_YAML_H_

#include <nlohmann/json.hpp>
#include <string>

namespace farkv {

// Ends with a newline. A string that any reader could take for something else
// is in double quotes, as in JSON.
std::string ToYaml(const nlohmann::ordered_json& document);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_YAML_H_

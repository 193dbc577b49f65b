// A message as a JSON object.
#ifndef FARKV_ADMIN_CLI_MESSAGE_FIELDS_H_
#define FARKV_ADMIN_CLI_MESSAGE_FIELDS_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace farkv {

// Every singular number, flag, enumeration (its name) and text of `message`, by
// its JSON name and in the order of declaration, also those that are 0. Other
// fields are left out.
nlohmann::ordered_json MessageFields(const google::protobuf::Message& message);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_MESSAGE_FIELDS_H_

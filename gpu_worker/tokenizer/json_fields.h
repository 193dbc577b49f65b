// Fields of a JSON object with errors that name them. Private to this room.
#ifndef FARKV_GPU_WORKER_TOKENIZER_JSON_FIELDS_H_
#define FARKV_GPU_WORKER_TOKENIZER_JSON_FIELDS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace farkv {

// A value may be as long as its file, so no message prints one.
inline absl::Status WrongType(const std::string& name, const char* wanted,
                              const nlohmann::json& value) {
  return absl::InvalidArgumentError("\"" + name + "\" is of type " +
                                    value.type_name() + ", must be " + wanted);
}

// The field; null when `object` is no object, the field is missing or null.
inline const nlohmann::json* FindField(const nlohmann::json& object,
                                       const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

inline absl::StatusOr<bool> BoolField(const nlohmann::json& object,
                                      const char* name, bool otherwise) {
  const nlohmann::json* value = FindField(object, name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return WrongType(name, "true or false", *value);
  return value->get<bool>();
}

inline absl::StatusOr<std::string> StringField(
    const nlohmann::json& object, const char* name,
    std::optional<std::string> otherwise = std::nullopt) {
  const nlohmann::json* value = FindField(object, name);
  if (value == nullptr && otherwise) return *std::move(otherwise);
  if (value == nullptr) {
    return absl::InvalidArgumentError("\"" + std::string(name) +
                                      "\" is missing");
  }
  if (!value->is_string()) return WrongType(name, "a string", *value);
  return value->get<std::string>();
}

// The items of a field that is missing or an array; null: missing.
inline absl::StatusOr<const nlohmann::json*> ArrayField(
    const nlohmann::json& object, const char* name) {
  const nlohmann::json* value = FindField(object, name);
  if (value != nullptr && !value->is_array()) {
    return WrongType(name, "an array", *value);
  }
  return value;
}

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_JSON_FIELDS_H_

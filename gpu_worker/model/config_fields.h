// Reads fields of a JSON object and keeps the first error, which names the
// field and its value. Internal to gpu_worker/model. Borrows the object.
#ifndef FARKV_GPU_WORKER_MODEL_CONFIG_FIELDS_H_
#define FARKV_GPU_WORKER_MODEL_CONFIG_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace farkv {

class ConfigFields {
 public:
  // `prefix` stands before every name in errors ("rope_scaling.").
  explicit ConfigFields(const nlohmann::json& object, std::string prefix = "");

  // Null when the field is absent or null.
  const nlohmann::json* Find(const char* field) const;
  bool Has(const char* field) const { return Find(field) != nullptr; }
  // The field, or `fallback` when it is absent or null.
  int32_t IntOr(const char* field, int32_t fallback, int32_t low, int32_t high);
  // `value` as the field, or an element of the field, is read.
  int32_t IntIn(const char* field, const nlohmann::json& value, int32_t low,
                int32_t high);
  double RealOr(const char* field, double fallback);  // positive
  bool BoolOr(const char* field, bool fallback);
  std::string TextOr(const char* field, const std::string& fallback);
  // As above; an absent field is an error.
  int32_t Int(const char* field, int32_t low, int32_t high);
  double Real(const char* field);

  void Fail(const std::string& message);
  const absl::Status& status() const { return status_; }

 private:
  void Refuse(const char* field, const nlohmann::json& value,
              const std::string& rule);

  const nlohmann::json& object_;
  const std::string prefix_;
  absl::Status status_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_CONFIG_FIELDS_H_

#include "gpu_worker/model/config_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gpu_worker/tokenizer/bounded_json.h"

namespace farkv {

using nlohmann::json;

ConfigFields::ConfigFields(const json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const json* ConfigFields::Find(const char* field) const {
  const auto found = object_.find(field);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigFields::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

void ConfigFields::Refuse(const char* field, const json& value,
                          const std::string& rule) {
  Fail(
      absl::StrCat(prefix_, field, " is ", Excerpt(value), ", must be ", rule));
}

int32_t ConfigFields::IntOr(const char* field, int32_t fallback, int32_t low,
                            int32_t high) {
  const json* found = Find(field);
  return found == nullptr ? fallback : IntIn(field, *found, low, high);
}

int32_t ConfigFields::IntIn(const char* field, const json& value, int32_t low,
                            int32_t high) {
  // Above int64 it wraps to a negative number, which no field has.
  const int64_t number =
      value.is_number_integer() ? value.get<int64_t>() : int64_t{low} - 1;
  if (number >= low && number <= high) return static_cast<int32_t>(number);
  Refuse(field, value,
         absl::StrCat("a whole number in [", low, ", ", high, "]"));
  return low;
}

double ConfigFields::RealOr(const char* field, double fallback) {
  const json* found = Find(field);
  if (found == nullptr) return fallback;
  if (!found->is_number() || !(found->get<double>() > 0.0)) {
    Refuse(field, *found, "a positive number");
    return fallback;
  }
  return found->get<double>();
}

bool ConfigFields::BoolOr(const char* field, bool fallback) {
  const json* found = Find(field);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) {
    Refuse(field, *found, "true or false");
    return fallback;
  }
  return found->get<bool>();
}

std::string ConfigFields::TextOr(const char* field,
                                 const std::string& fallback) {
  const json* found = Find(field);
  if (found == nullptr) return fallback;
  if (!found->is_string()) {
    Refuse(field, *found, "a string");
    return fallback;
  }
  return found->get<std::string>();
}

int32_t ConfigFields::Int(const char* field, int32_t low, int32_t high) {
  if (!Has(field)) Fail(absl::StrCat("field ", prefix_, field, " is missing"));
  return IntOr(field, low, low, high);
}

double ConfigFields::Real(const char* field) {
  if (!Has(field)) Fail(absl::StrCat("field ", prefix_, field, " is missing"));
  return RealOr(field, 1.0);
}

}  // namespace farkv

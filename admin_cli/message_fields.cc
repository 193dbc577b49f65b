#include "admin_cli/message_fields.h"

namespace farkv {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Null for a type that MessageFields leaves out.
nlohmann::ordered_json ValueOf(const Message& message,
                               const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection->GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    default:
      return nullptr;
  }
}

}  // namespace

nlohmann::ordered_json MessageFields(const Message& message) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) continue;
    nlohmann::ordered_json value = ValueOf(message, field);
    if (!value.is_null()) object[field->json_name()] = std::move(value);
  }
  return object;
}

}  // namespace farkv

// The v1 control plane, field by field, against the committed listing: a
// number, type, name or method may be added, never changed or removed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace farkv {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using Lines = std::set<std::string>;

void ListEnum(const EnumDescriptor& type, Lines& lines) {
  for (int i = 0; i < type.value_count(); ++i) {
    lines.insert(absl::StrCat("enum ", type.full_name(), " ",
                              type.value(i)->name(), " = ",
                              type.value(i)->number()));
  }
}

std::string TypeName(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

void ListMessage(const Descriptor& type, Lines& lines) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const char* label = field.is_repeated()    ? " repeated "
                        : field.has_presence() ? " presence "
                                               : " ";
    lines.insert(absl::StrCat("field ", type.full_name(), ".", field.name(),
                              " = ", field.number(), label, TypeName(field)));
  }
  for (int i = 0; i < type.nested_type_count(); ++i) {
    ListMessage(*type.nested_type(i), lines);
  }
  for (int i = 0; i < type.enum_type_count(); ++i) {
    ListEnum(*type.enum_type(i), lines);
  }
}

void ListFile(const FileDescriptor& file, Lines& lines) {
  for (int i = 0; i < file.message_type_count(); ++i) {
    ListMessage(*file.message_type(i), lines);
  }
  for (int i = 0; i < file.enum_type_count(); ++i) {
    ListEnum(*file.enum_type(i), lines);
  }
  for (int i = 0; i < file.service_count(); ++i) {
    const auto& service = *file.service(i);
    for (int m = 0; m < service.method_count(); ++m) {
      const auto& method = *service.method(m);
      lines.insert(absl::StrCat("rpc ", service.full_name(), ".", method.name(),
                                " ", method.input_type()->full_name(), " -> ",
                                method.server_streaming() ? "stream " : "",
                                method.output_type()->full_name()));
    }
  }
}

// What protoc made of the current files in this build.
Lines Current() {
  std::ifstream file(FARKV_DESCRIPTOR_SET, std::ios::binary);
  google::protobuf::FileDescriptorSet set;
  EXPECT_TRUE(set.ParseFromIstream(&file)) << FARKV_DESCRIPTOR_SET;
  google::protobuf::DescriptorPool pool;
  Lines lines;
  for (const auto& proto : set.file()) {
    const FileDescriptor* built = pool.BuildFile(proto);
    EXPECT_NE(built, nullptr) << proto.name();
    if (built != nullptr && built->package().rfind("farkv.", 0) == 0) {
      ListFile(*built, lines);
    }
  }
  return lines;
}

TEST(ProtosGoldenTest, NothingOfV1HasChanged) {
  const Lines current = Current();
  if (const char* path = std::getenv("FARKV_WRITE_GOLDEN")) {
    std::ofstream out(path);
    for (const std::string& line : current) out << line << "\n";
  }
  std::ifstream file(std::string(std::getenv("FARKV_TEST_SOURCE_DIR")) +
                     "/tests/golden/protos_v1.txt");
  ASSERT_TRUE(file.good());

  Lines golden;
  for (std::string line; std::getline(file, line);) golden.insert(line);

  for (const std::string& line : golden) {
    EXPECT_TRUE(current.contains(line)) << "gone or changed: " << line;
  }
  for (const std::string& line : current) {
    EXPECT_TRUE(golden.contains(line))
        << "new, add it to tests/golden/protos_v1.txt: " << line;
  }
}

}  // namespace
}  // namespace farkv

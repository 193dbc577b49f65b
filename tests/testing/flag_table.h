// A table over every flag of a program: what each must refuse. A flag that is
// missing from its table fails the test, so nobody forgets a new one.
#ifndef FARKV_TESTS_TESTING_FLAG_TABLE_H_
#define FARKV_TESTS_TESTING_FLAG_TABLE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/process/environment_names.h"
#include "common/process/flags.h"

namespace farkv::testing {

// Texts that the flag must refuse. Any text can be a path: those have none.
using FlagTable = std::map<std::string, std::vector<std::string>>;

// `Options` has Register(Flags&) and Finish(), as NodeOptions and WorkerFlags.
// What the program would say about `arguments`; empty when it takes them.
template <typename Options>
std::string RefusalOf(const std::vector<std::string>& arguments) {
  Options options;
  Flags flags({"farkv-test", "Tests flags.", "1"});
  options.Register(flags);
  ::testing::internal::CaptureStderr();
  const std::optional<int> code = flags.Parse(
      arguments, [](const std::string&) -> const char* { return nullptr; });
  const std::string text = ::testing::internal::GetCapturedStderr();
  if (code.has_value()) {
    EXPECT_EQ(*code, Flags::kUsageError);
    return text;
  }
  return std::string(options.Finish().message());
}

template <typename Options>
std::set<std::string> FlagNames() {
  Options options;
  Flags flags({"farkv-test", "Tests flags.", "1"});
  options.Register(flags);
  std::set<std::string> names;
  for (const auto& [name, value] : flags.Effective()) names.insert(name);
  return names;
}

// `base`: arguments that are good.
template <typename Options>
void ExpectRefusals(const FlagTable& table,
                    const std::vector<std::string>& base) {
  EXPECT_EQ(RefusalOf<Options>(base), "");
  std::set<std::string> listed;
  for (const auto& [name, values] : table) {
    listed.insert(name);
    for (const std::string& value : values) {
      std::vector<std::string> arguments = base;
      arguments.push_back("--" + name + "=" + value);
      const std::string said = RefusalOf<Options>(arguments);
      EXPECT_THAT(said, ::testing::HasSubstr("--" + name)) << value;
      EXPECT_THAT(said, ::testing::HasSubstr(value.substr(0, 20))) << name;
    }
    // Of every flag: what would break a line of the log or a message.
    for (const std::string value : {"a\nb", "a\x1b[1mb", "a\xff"}) {
      std::vector<std::string> arguments = base;
      arguments.push_back("--" + name + "=" + value);
      const std::string said = RefusalOf<Options>(arguments);
      EXPECT_THAT(said, ::testing::HasSubstr("--" + name));
      EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr(value)));
    }
  }
  EXPECT_EQ(listed, FlagNames<Options>());
  for (const std::string& name : listed) {
    EXPECT_TRUE(IsFarkvVariable(EnvironmentName(name)))
        << "add it to common/process/environment_names.cc: " << name;
  }
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_TESTING_FLAG_TABLE_H_

#include "admin_cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OutputTest, OfASessionOnlyTheHandleIsShown) {
  EXPECT_EQ(ShownSession(std::string("\x01\x02\x03\x04", 4)), "01020304");
  EXPECT_EQ(ShownSession(std::string(16, '\x7f')), "7f7f7f7f");
  EXPECT_EQ(ShownSession(""), "-");
}

TEST(OutputTest, ANameCannotBreakALineOrDriveTheTerminal) {
  Output output("NodeList", {{"NODE", "id"}, {"STATE", "state"}});
  output.AddRow({"a\nb\x1b[2J", "ready"});
  std::stringstream out;

  output.Print("table", out);

  EXPECT_THAT(out.str(), HasSubstr("a?b?[2J  ready\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace farkv

#include "admin_cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Output Things() {
  Output output("ThingList",
                {{"NAME", "id"}, {"SIZE", "size"}, {"PAGES", "pages", true}});
  output.AddRow({"b", "2GiB", 10});
  output.AddRow({"a", "512MiB", 9});
  output.AddRow({"c", "1GiB", 9});
  return output;
}

std::string Printed(const OutputOptions& options) {
  std::stringstream out;
  Things().Print(options, out);
  return out.str();
}

OutputOptions Form(const std::string& format, const std::string& sort_by = "") {
  OutputOptions options;
  options.format = format;
  options.sort_by = sort_by;
  return options;
}

TEST(OutputTest, OfASessionOnlyTheHandleIsShown) {
  EXPECT_EQ(ShownSession(std::string("\x01\x02\x03\x04", 4)), "01020304");
  EXPECT_EQ(ShownSession(std::string(16, '\x7f')), "7f7f7f7f");
  EXPECT_EQ(ShownSession(""), "-");
}

TEST(OutputTest, ANameCannotBreakALineOrDriveTheTerminal) {
  Output output("NodeList", {{"NODE", "id"}, {"STATE", "state"}});
  output.AddRow({"a\nb\x1b[2J", "ready"});
  for (const char* format : {"table", "wide", "name"}) {
    std::stringstream out;

    output.Print(format, out);

    EXPECT_THAT(out.str(), HasSubstr("a?b?[2J"));
    EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
  }
}

TEST(OutputTest, ATableHasTitlesUnlessToldOtherwise) {
  EXPECT_EQ(Printed(Form("table")),
            "NAME  SIZE\n"
            "b     2GiB\n"
            "a     512MiB\n"
            "c     1GiB\n");
  OutputOptions bare = Form("table");
  bare.no_headers = true;
  EXPECT_EQ(Printed(bare), "b  2GiB\na  512MiB\nc  1GiB\n");
}

TEST(OutputTest, AWideTableHasEveryColumn) {
  EXPECT_EQ(Printed(Form("wide")),
            "NAME  SIZE    PAGES\n"
            "b     2GiB    10\n"
            "a     512MiB  9\n"
            "c     1GiB    9\n");
}

TEST(OutputTest, NamesCanBeHandedToOtherCommands) {
  EXPECT_EQ(Printed(Form("name")), "thing/b\nthing/a\nthing/c\n");
  Output pools("PoolList", {{"OWNER", "owner"}, {"TIER", "tier"}}, 2);
  pools.AddRow({"node-0", "T1"});
  std::stringstream out;
  pools.Print("name", out);
  EXPECT_EQ(out.str(), "pool/node-0/T1\n");
}

TEST(OutputTest, RowsAreSortedByValueNotByText) {
  EXPECT_EQ(Printed(Form("name", "size")), "thing/a\nthing/c\nthing/b\n");
  EXPECT_EQ(Printed(Form("name", "NAME")), "thing/a\nthing/b\nthing/c\n");
  // Equal ones stay as they came, in both directions.
  EXPECT_EQ(Printed(Form("name", "PAGES")), "thing/a\nthing/c\nthing/b\n");
  EXPECT_EQ(Printed(Form("name", "-pages")), "thing/b\nthing/a\nthing/c\n");

  Output times("TimeList", {{"AGE", "age"}});
  times.AddRow({"1m0.5s"});
  times.AddRow({"9s"});
  std::stringstream out;
  times.Print(Form("name", "age"), out);
  EXPECT_EQ(out.str(), "time/9s\ntime/1m0.5s\n");
}

TEST(OutputTest, AColumnThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_TRUE(Things().CheckSortBy("").ok());
  EXPECT_TRUE(Things().CheckSortBy("-Pages").ok());
  const absl::Status status = Things().CheckSortBy("-weight");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--sort-by"), HasSubstr("weight"),
                    HasSubstr("id, size, pages")));
}

TEST(OutputTest, JsonAndYamlCarryEveryColumnUnderItsKey) {
  const auto json = nlohmann::json::parse(Printed(Form("json", "size")));
  EXPECT_EQ(json["apiVersion"], "farkv/v1");
  EXPECT_EQ(json["kind"], "ThingList");
  EXPECT_EQ(json["items"].size(), 3);
  EXPECT_EQ(json["items"][0]["id"], "a");
  EXPECT_EQ(json["items"][0]["pages"], 9);
  EXPECT_THAT(Printed(Form("yaml", "size")), HasSubstr("apiVersion: farkv/v1\n"
                                                       "kind: ThingList\n"
                                                       "items:\n"
                                                       "- id: a\n"
                                                       "  size: \"512MiB\"\n"
                                                       "  pages: 9\n"));
}

}  // namespace
}  // namespace farkv

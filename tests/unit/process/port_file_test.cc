#include "common/process/port_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

class PortFileTest : public ::testing::Test {
 protected:
  PortFileTest() { std::filesystem::create_directories(folder_); }
  ~PortFileTest() override { std::filesystem::remove_all(folder_); }

  bool FolderIsEmpty() const { return std::filesystem::is_empty(folder_); }

  const std::string folder_ =
      absl::StrCat(::testing::TempDir(), "/port_file_test_", getpid());
  const std::string path_ = folder_ + "/ports.json";
};

TEST_F(PortFileTest, HoldsWhatWasGivenAndThePid) {
  auto writer = PortFileWriter::Open(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();

  ASSERT_TRUE(writer
                  ->Publish({.numbers = {{"listen", 7401}},
                             .texts = {{"node_id", "n1"}}})
                  .ok());

  const nlohmann::json json = nlohmann::json::parse(std::ifstream(path_));
  EXPECT_EQ(json["listen"], 7401);
  EXPECT_EQ(json["node_id"], "n1");
  EXPECT_EQ(json["pid"], getpid());
}

TEST_F(PortFileTest, AFileOfAnEarlierLifeIsGoneBeforeThisOneIsReady) {
  std::ofstream(path_) << "left from before";

  const auto writer = PortFileWriter::Open(path_);

  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PortFileTest, NothingIsLeftAfterACleanEndPublishedOrNot) {
  for (const bool publish : {false, true}) {
    {
      auto writer = PortFileWriter::Open(path_);
      ASSERT_TRUE(writer.ok()) << writer.status();
      if (publish) {
        ASSERT_TRUE(writer->Publish({}).ok());
      }
      EXPECT_NE(FolderIsEmpty(), publish);  // also before: it may be killed
    }
    EXPECT_TRUE(FolderIsEmpty()) << publish;
  }
}

TEST_F(PortFileTest, TheFileOfAnotherProgramIsLeftAlone) {
  auto first = PortFileWriter::Open(path_);
  ASSERT_TRUE(first->Publish({}).ok());
  auto second = PortFileWriter::Open(path_);
  ASSERT_TRUE(second->Publish({}).ok());

  first = PortFileWriter::Open("");

  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(PortFileTest, AnEmptyPathWritesNothing) {
  auto writer = PortFileWriter::Open("");

  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(writer->Publish({}).ok());
}

TEST_F(PortFileTest, APathThatCannotBeWrittenIsNoticedBeforeAnythingIsSaid) {
  const auto missing = PortFileWriter::Open("/nowhere/ports.json");
  const auto folder = PortFileWriter::Open(folder_);

  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(missing.status().ToString().find("/nowhere/ports.json"),
            std::string::npos);
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace farkv

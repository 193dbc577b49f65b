#include "common/process/port_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace farkv {
namespace {

TEST(PortFileTest, HoldsWhatWasGivenAndThePid) {
  const std::string path = ::testing::TempDir() + "/port_file_test.json";
  std::ofstream(path) << "left from before";

  ASSERT_TRUE(WritePortFile(path, {.numbers = {{"listen", 7401}},
                                   .texts = {{"node_id", "n1"}}})
                  .ok());

  const nlohmann::json json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(json["listen"], 7401);
  EXPECT_EQ(json["node_id"], "n1");
  EXPECT_EQ(json["pid"], getpid());
}

TEST(PortFileTest, AnEmptyPathWritesNothing) {
  EXPECT_TRUE(WritePortFile("", {}).ok());
}

TEST(PortFileTest, AFolderThatDoesNotExistIsAnErrorNamingThePath) {
  const absl::Status status = WritePortFile("/nowhere/ports.json", {});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.ToString().find("/nowhere/ports.json"), std::string::npos);
}

}  // namespace
}  // namespace farkv

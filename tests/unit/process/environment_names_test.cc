#include "common/process/environment_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(EnvironmentNamesTest, AMisspeltNameIsToldWithTheOneThatWasMeant) {
  EXPECT_THAT(VariableWarnings({"FARKV_T1_BYTE", "FARKV_MEMORY_NODE",
                                "FARKV_DATA_PORT_RANG"}),
              ElementsAre(HasSubstr("is FARKV_DATA_PORT_RANGE meant?"),
                          AllOf(HasSubstr("'FARKV_MEMORY_NODE'"),
                                HasSubstr("is FARKV_MEMORY_NODES meant?")),
                          AllOf(HasSubstr("'FARKV_T1_BYTE'"),
                                HasSubstr("is FARKV_T1_BYTES meant?"))));
}

TEST(EnvironmentNamesTest, ANameThatIsLikeNoneIsToldToo) {
  EXPECT_THAT(VariableWarnings({"FARKV_SOMETHING_ELSE"}),
              ElementsAre(AllOf(HasSubstr("FARKV_SOMETHING_ELSE"),
                                Not(HasSubstr("meant")))));
}

// One environment may serve a node, a worker and farkvctl.
TEST(EnvironmentNamesTest, NamesOfOtherProgramsAndOfOthersArePassedOver) {
  EXPECT_THAT(
      VariableWarnings({"FARKV_T0_BYTES", "FARKV_T1_BYTES", "FARKV_NODES",
                        "FARKV_CONFIG", "FARKV_FAULTS", "FARKV_TEST_SEED",
                        "FARKV_JOBS", "PATH", "XFARKV_T1_BYTE", "FARKV"}),
      ElementsAre());
}

// As Kubernetes makes them of the Service farkv-worker.
TEST(EnvironmentNamesTest, VariablesOfServicesArePassedOver) {
  EXPECT_THAT(
      VariableWarnings(
          {"FARKV_WORKER_SERVICE_HOST", "FARKV_WORKER_SERVICE_PORT",
           "FARKV_WORKER_SERVICE_PORT_GRPC", "FARKV_WORKER_PORT",
           "FARKV_WORKER_PORT_7501_TCP", "FARKV_WORKER_PORT_7501_TCP_ADDR"}),
      ElementsAre());
}

TEST(EnvironmentNamesTest, APortWithoutAServiceIsAMistake) {
  EXPECT_THAT(VariableWarnings({"FARKV_LISTEN_PORT", "FARKV_DATA_PORT",
                                "FARKV_WORKER_SERVICE_HOST"}),
              ElementsAre(HasSubstr("'FARKV_DATA_PORT'"),
                          HasSubstr("'FARKV_LISTEN_PORT'")));
}

TEST(EnvironmentNamesTest, ANameCannotDriveTheTerminal) {
  const auto warnings = VariableWarnings({"FARKV_\x1b[2J"});

  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace farkv

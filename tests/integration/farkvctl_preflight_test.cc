// Each check of `farkvctl preflight` that can be made to fail on any machine:
// it says what is wrong and what to do, and the exit code is 4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Runs preflight behind `before`, words of a shell, and returns its findings.
struct Checked {
  int exit_code = -1;
  nlohmann::json findings;
  std::string output;
};
Checked Preflight(const std::vector<std::string>& flags,
                  const std::string& before = "") {
  const std::string command = absl::StrCat(
      before, "'", BinDir(), "/farkvctl' preflight -o json --listen=none ",
      absl::StrJoin(flags, " "));
  const ProgramResult result = RunProgram({"/bin/sh", "-c", command});
  Checked checked;
  checked.exit_code = result.exit_code;
  checked.output = result.output;
  const auto document = nlohmann::json::parse(result.output, nullptr, false);
  if (document.is_object()) checked.findings = document["items"];
  return checked;
}

// A finding of `check` has this status, names what is wrong, and a fix.
void ExpectFinding(const Checked& checked, const std::string& check,
                   const std::string& status, const std::string& found,
                   const std::string& fix) {
  SCOPED_TRACE(checked.output);
  bool there = false;
  for (const auto& finding : checked.findings) {
    if (finding["check"] != check || finding["status"] != status) continue;
    there = true;
    EXPECT_THAT(finding["found"].get<std::string>(), ContainsRegex(found));
    EXPECT_THAT(finding["fix"].get<std::string>(), HasSubstr(fix));
  }
  EXPECT_TRUE(there) << "no " << status << " of " << check;
}

void ExpectFailure(const std::vector<std::string>& flags,
                   const std::string& check, const std::string& found,
                   const std::string& fix, const std::string& before = "") {
  const Checked checked = Preflight(flags, before);
  EXPECT_EQ(checked.exit_code, 4) << checked.output;
  ExpectFinding(checked, check, "fail", found, fix);
  // Whatever else is wrong here has its fix, too.
  for (const auto& finding : checked.findings) {
    EXPECT_EQ(finding["fix"].get<std::string>().empty(),
              finding["status"] == "ok")
        << finding.dump();
  }
}

// Words of a shell that run the rest as nobody, who has no capabilities; empty
// when this is no root, who has none either.
std::string AsNobody() {
  return geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups "
                        : "";
}

TEST(FarkvctlPreflightTest, APoolThatDoesNotFitSaysHowMuchThereIs) {
  ExpectFailure({"--role=node", "--t1-bytes=1024TiB"}, "memory",
                "1024TiB wanted", "lower --t1-bytes");
}

TEST(FarkvctlPreflightTest, ANumaNodeThatIsNotThereIsNamed) {
  ExpectFailure({"--role=node", "--t1-bytes=64MiB", "--numa-node=999"}, "numa",
                "none of them 999", "--numa-node");
}

// Refused before anything is looked at, as the node does.
TEST(FarkvctlPreflightTest, ANetworkInterfaceThatIsNotThereIsNamed) {
  const Checked checked = Preflight({"--data-device=nosuch0,lo"});

  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_THAT(checked.output,
              ContainsRegex("--data-device: 'nosuch0' .*it has .*lo"));
}

TEST(FarkvctlPreflightTest, RdmaThatIsWantedAndNotThereFails) {
  if (std::filesystem::exists("/sys/class/infiniband")) {
    GTEST_SKIP() << "this machine has RDMA devices";
  }
  ExpectFailure({"--rdma"}, "rdma", "no device", "driver");
  ExpectFailure({"--rdma"}, "ucx", "tcp", "TCP and the map only");
}

TEST(FarkvctlPreflightTest, MapDirectoriesThatCannotBeUsedSayWhy) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "x";
  const std::string deep = folder.path() + "/" + std::string(100, 'd');
  std::filesystem::create_directory(deep);

  ExpectFailure({"--map-dir=" + folder.path() + "/none"}, "map-dir",
                "/none does not exist", "make it");
  ExpectFailure({"--map-dir=" + file}, "map-dir", "/file is no directory",
                "name a directory");
  ExpectFailure({"--map-dir=" + deep, "--node-id=n"}, "map-dir", "at most 107",
                "shorter");
}

TEST(FarkvctlPreflightTest, AMapDirectoryOfSomebodyElseSaysWhatModeItNeeds) {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));

  const Checked checked = Preflight({"--map-dir=" + folder.path()}, AsNobody());

  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  EXPECT_EQ(checked.exit_code, 4) << checked.output;
  ExpectFinding(checked, "map-dir", "fail", "cannot be written to", "2770");
}

TEST(FarkvctlPreflightTest, TooLittleLockedMemoryFailsWhereRdmaWantsIt) {
  ExpectFailure({"--role=node", "--t1-bytes=64MiB", "--rdma"}, "locked-memory",
                "64KiB, RDMA locks 64MiB", "ulimit -l unlimited",
                "ulimit -l 64; " + AsNobody());
}

// Not the end of it: the node says the same when it opens too many.
TEST(FarkvctlPreflightTest, TooFewFilesAreAWarningWithTheNumberThatDoes) {
  const Checked checked =
      Preflight({"--role=node", "--t1-bytes=64MiB"}, "ulimit -n 64; ");

  ExpectFinding(checked, "open-files", "warn", "64, 257 wanted",
                "ulimit -n 257");
}

TEST(FarkvctlPreflightTest, TransportsOfUcxThatSomebodyChoseAreAWarning) {
  const Checked checked = Preflight({}, "UCX_TLS=nosuch ");

  ExpectFinding(checked, "ucx", "warn", "UCX_TLS=nosuch", "unset it");
}

}  // namespace
}  // namespace farkv::testing

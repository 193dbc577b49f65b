#include "admin_cli/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

std::string Shown(const Output& output, const std::string& format) {
  std::stringstream out;
  output.Print(format, out);
  return out.str();
}

GetProcessResponse Process() {
  GetProcessResponse process;
  process.set_id("w1");
  process.set_kind(PROCESS_KIND_WORKER);
  process.set_sessions(3);
  process.mutable_uptime()->set_seconds(90);
  process.mutable_handshake()->set_kernel_target("AVX2");
  process.mutable_handshake()->set_software_version("1.2");
  (*process.mutable_config())["model"] = "m";
  (*process.mutable_config())["cold"] = "map";
  return process;
}

TEST(TablesTest, TheStateOfAProcessIsOneWord) {
  GetProcessResponse process = Process();
  Output output = NodeOutput();
  AddNode(process, "a:1", output);
  process.set_pressure(true);
  AddNode(process, "a:1", output);
  process.set_draining(true);
  AddNode(process, "a:1", output);

  const std::string table = Shown(output, "table");
  EXPECT_THAT(table, ::testing::ContainsRegex("w1 +a:1 +ready +0 +3 +1m30s"));
  EXPECT_THAT(table, ::testing::ContainsRegex("w1 +a:1 +pressure "));
  EXPECT_THAT(table, ::testing::ContainsRegex("w1 +a:1 +draining "));
}

TEST(TablesTest, AWorkerIsShownWithItsModelWhenThereIsRoom) {
  Output output = WorkerOutput();
  AddWorker(Process(), "a:1", output);

  EXPECT_EQ(Shown(output, "name"), "worker/w1\n");
  EXPECT_THAT(Shown(output, "wide"),
              ::testing::ContainsRegex("w1 +a:1 +ready +3 +1m30s +AVX2 +1.2 "
                                       "+m"));
}

TEST(TablesTest, ASequenceShowsItsLossyTokensWhenThereIsRoom) {
  Sequence sequence;
  sequence.set_request_id("r");
  sequence.set_state("running");
  sequence.set_t0_tokens(90);
  sequence.set_lossy_tokens(64);
  sequence.set_undone_promotions(7);
  Output output = SequenceOutput();
  AddSequence(sequence, output);

  const std::string wide = Shown(output, "wide");
  EXPECT_THAT(wide, ::testing::HasSubstr("LOSSY  UNDONE"));
  EXPECT_THAT(wide, ::testing::ContainsRegex(" 64 +7 "));
  EXPECT_THAT(Shown(output, "table"),
              ::testing::Not(::testing::HasSubstr("LOSSY")));
}

Session SessionWithLease(const char* id, int64_t seconds) {
  Session session;
  session.set_session_id(id);
  session.set_worker_id("w1");
  session.set_tenant("blue");
  session.set_pages(7);
  session.set_bytes(4096);
  session.mutable_lease_remaining()->set_seconds(seconds);
  return session;
}

TEST(TablesTest, LeasesAreInOrderOfTheirEndWhateverItsUnit) {
  Output output = LeaseOutput();
  AddLease(SessionWithLease("aaaa", 70), "a:1", output);
  AddLease(SessionWithLease("bbbb", 9), "a:1", output);
  OutputOptions by_end;
  by_end.sort_by = "remaining";
  std::stringstream out;

  output.Print(by_end, out);

  EXPECT_THAT(out.str(),
              ::testing::ContainsRegex("62626262 +a:1 +w1 +9s +7 +4KiB *\n"
                                       "61616161 +a:1 +w1 +1m10s +7 +4KiB"));
  EXPECT_THAT(Shown(output, "wide"), ::testing::HasSubstr("blue"));
}

TEST(TablesTest, SettingsAreInOrderOfTheirNames) {
  Output output = ConfigOutput();
  AddConfig(Process(), "a:1", output);

  EXPECT_EQ(Shown(output, "table"),
            "PROCESS  FLAG   VALUE\n"
            "w1       cold   map\n"
            "w1       model  m\n");
}

TEST(TablesTest, APoolIsNamedByOwnerAndTier) {
  Pool pool;
  pool.set_owner_id("node-0");
  pool.set_tier(types::v1::TIER_T1);
  pool.set_capacity_bytes(uint64_t{1} << 30);
  Output output = PoolOutput();
  AddPool(pool, output);

  EXPECT_EQ(Shown(output, "name"), "pool/node-0/T1\n");
  EXPECT_THAT(Shown(output, "table"), ::testing::HasSubstr("1GiB"));
}

TEST(TablesTest, AFindingIsALineWithItsFix) {
  Output output = FindingOutput();
  AddFinding({"clock", Finding::Level::kWarn, "hpet", "use tsc"}, output);

  EXPECT_EQ(Shown(output, "table"),
            "CHECK  STATUS  FOUND  FIX\n"
            "clock  warn    hpet   use tsc\n");
}

}  // namespace
}  // namespace farkv

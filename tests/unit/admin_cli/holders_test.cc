// Why a page is not free, in words.
#include "admin_cli/holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Page StoredPage() {
  Page page;
  page.set_state(PAGE_STATE_STORED);
  page.set_session_id("\xab\xcd\xef\x01");
  page.set_tier(types::v1::TIER_T1);
  page.set_layer(2);
  page.set_page_index(5);
  page.set_live_rows(100);
  page.set_bytes(4096);
  page.mutable_held_for()->set_seconds(12);
  return page;
}

Page GivenUpPage(const std::string& session, int64_t seconds) {
  Page page;
  page.set_state(PAGE_STATE_QUARANTINED);
  page.set_session_id(session);
  page.set_tenant("t");
  page.set_bytes(4096);
  page.mutable_held_for()->set_seconds(seconds);
  return page;
}

std::string Shown(const Output& output) {
  std::stringstream out;
  output.Print("table", out);
  return out.str();
}

TEST(HoldersTest, AStoredPageIsHeldByItsLeaseAndItsRows) {
  Page page = StoredPage();
  EXPECT_EQ(WhyHeld(page),
            "100 live rows; lease runs for 12s unless renewed, then "
            "quarantine");

  page.set_mapped(true);
  page.set_pins(2);
  page.set_compressing(true);

  EXPECT_THAT(WhyHeld(page),
              AllOf(HasSubstr("mapped"), HasSubstr("2 copies run over it"),
                    HasSubstr("it is being compressed")));
}

TEST(HoldersTest, AReservedPageWaitsForItsStore) {
  Page page = StoredPage();
  page.set_state(PAGE_STATE_RESERVED);
  page.set_storing(true);

  EXPECT_THAT(WhyHeld(page),
              AllOf(HasSubstr("waits for its store"),
                    HasSubstr("a store writes it"), HasSubstr("12s")));
}

TEST(HoldersTest, APageInQuarantineIsFreeWhenThatIsOver) {
  Output output = PageOutput();
  AddPage(GivenUpPage("\xab\xcd\xef\x01", 3), "n:1", output);
  AddPage(StoredPage(), "n:1", output);

  EXPECT_THAT(Shown(output),
              AllOf(ContainsRegex("abcdef01 +n:1 +T-1 +- +- +quarantined .*a "
                                  "mapped reader may read it for 3s"),
                    ContainsRegex("abcdef01 +n:1 +T1 +2 +5 +stored +100")));
}

TEST(HoldersTest, PagesInQuarantineAreSummedUpBySession) {
  QuarantineSums sums;
  sums.Add(GivenUpPage("aaaa", 3));
  sums.Add(GivenUpPage("bbbb", 1));
  sums.Add(GivenUpPage("aaaa", 7));
  Output output = HolderOutput();
  sums.AddTo(output);

  EXPECT_THAT(
      Shown(output),
      AllOf(ContainsRegex("61616161 +t +- +quarantined +2 .*8KiB .*last "
                          "is free in 7s"),
            ContainsRegex("62626262 +t +- +quarantined +1 ")));
}

TEST(HoldersTest, ASessionSaysHowManyPagesWaitForTheirStore) {
  Session session;
  session.set_pages(5);
  session.set_stored_pages(5);
  session.mutable_lease_remaining()->set_seconds(4);
  EXPECT_THAT(WhyHeld(session), Not(HasSubstr("store")));

  session.set_stored_pages(3);
  session.set_mapped(true);

  EXPECT_THAT(WhyHeld(session), AllOf(HasSubstr("2 wait for their store"),
                                      HasSubstr("4s"), HasSubstr("mapped")));
}

TEST(HoldersTest, APoolSaysWhatItHasAndWhetherItTakesPages) {
  Pool pool;
  pool.set_owner_id("n");
  pool.set_tier(types::v1::TIER_T1);
  pool.set_numa_node(1);
  pool.set_capacity_bytes(64 << 20);
  pool.set_used_bytes(16 << 20);
  pool.set_quarantined_bytes(8 << 20);
  pool.set_stranded_bytes(4 << 20);

  EXPECT_THAT(PoolText(pool),
              AllOf(HasSubstr("T1 of n, NUMA node 1"), HasSubstr("40MiB, 4MiB"),
                    HasSubstr("taken")));
  pool.set_pressure(true);
  EXPECT_THAT(PoolText(pool), HasSubstr("refused"));
}

}  // namespace
}  // namespace farkv

#include "tests/integration/settled.h"

#include <gtest/gtest.h>

#include <regex>

namespace farkv::testing {

void ExpectSettled(absl::FunctionRef<std::string()> debts,
                   ChildProcess* process, absl::Duration timeout) {
  const absl::Status settled = bench::AwaitSettled(debts, process, timeout);
  EXPECT_TRUE(settled.ok()) << settled;
}

void ExpectEvenAccounts(const std::string& worker_log, size_t num_nodes) {
  const std::regex account(
      "memory node (\\S+): (\\d+) requests sent, (\\d+) answered; transport: "
      "(\\d+) submitted, (\\d+) completed, (\\d+) still open");
  size_t found = 0;
  for (std::sregex_iterator it(worker_log.begin(), worker_log.end(), account);
       it != std::sregex_iterator(); ++it) {
    const std::smatch& match = *it;
    EXPECT_EQ(match.str(2), match.str(3)) << match.str();
    EXPECT_EQ(match.str(4), match.str(5)) << match.str();
    EXPECT_EQ(match.str(6), "0") << match.str();
    EXPECT_NE(match.str(4), "0") << match.str();
    ++found;
  }
  EXPECT_EQ(found, num_nodes) << worker_log;
}

}  // namespace farkv::testing

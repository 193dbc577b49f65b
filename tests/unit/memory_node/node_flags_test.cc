// Every flag of farkv-memory-node refuses what it cannot mean.
#include <gtest/gtest.h>

#include "memory_node/node_options.h"
#include "tests/testing/flag_table.h"

namespace farkv {
namespace {

using testing::ExpectRefusals;
using testing::FlagTable;
using testing::RefusalOf;

const std::vector<std::string> kBadAddresses = {
    "",       ":80",         "host",   "host:99999", "host:-1",
    "::1:80", "http://x:80", "a b:80", "host:8o",    "host: 80"};
const std::vector<std::string> kBadSizes = {"",       "64", "-1GiB",
                                            "1.5GiB", "xB", "99999999999TiB"};
const std::vector<std::string> kBadDurations = {"",    "5",   "0s",      "-5s",
                                                "inf", "1ns", "9999999h"};
const std::vector<std::string> kBadSwitches = {"yes", "2"};

FlagTable Table() {
  return {
      {"listen", kBadAddresses},
      {"admin-listen", kBadAddresses},
      {"metrics-listen", kBadAddresses},
      {"data-listen", kBadAddresses},
      {"data-advertise", {"host:7401", "a b", "http://x", "a/b"}},
      {"data-port-range",
       {"0", "9000", "9100-9000", "0-9100", "9000-65536", "a-b", "-5-9"}},
      {"data-device", {"no-such-if", "lo,,", "../lo", "lo,lo"}},
      {"node-id", {"a/b", "a b", "..", "-a", std::string(300, 'x')}},
      {"t1-bytes", kBadSizes},
      {"t2-bytes", kBadSizes},
      {"huge-pages", kBadSwitches},
      {"numa-node", {"", "-2", "1023", "1024", "x", "1e3", "0.5"}},
      {"threads", {"", "0", "-1", "1025", "two", "99999999999999999999"}},
      {"high-watermark", {"", "0", "0.00001", "1.1", "-1", "nan", "95%"}},
      {"max-lease", kBadDurations},
      {"tenant-quota", kBadSizes},
      {"drain-grace", kBadDurations},
      {"scrub-rate", kBadSizes},
      {"log-level", {"", "loud", "INFO"}},
      {"log-format", {"", "xml"}},
      {"map-dir", {}},
      {"port-file", {}},
      {"tls-ca", {}},
      {"tls-cert", {}},
      {"tls-key", {}},
  };
}

TEST(NodeFlagsTest, EveryFlagRefusesWhatItCannotMeanNamingIt) {
  ExpectRefusals<NodeOptions>(Table(), {"--t1-bytes=64MiB"});
}

TEST(NodeFlagsTest, BoundsThemselvesAreTaken) {
  EXPECT_EQ(RefusalOf<NodeOptions>(
                {"--max-lease=1s", "--high-watermark=0.0001",
                 "--data-port-range=1-65535", "--data-device=lo",
                 "--node-id=" + std::string(100, 'x'), "--numa-node=-1",
                 "--data-advertise=::1", "--listen=[::1]:0"}),
            "");
  EXPECT_EQ(RefusalOf<NodeOptions>(
                {"--max-lease=24h", "--high-watermark=1",
                 "--data-device=", "--node-id=", "--data-port-range="}),
            "");
}

TEST(NodeFlagsTest, TheSizeOfThePoolIsNamedWithItsFlag) {
  EXPECT_THAT(RefusalOf<NodeOptions>({"--t1-bytes=1MiB"}),
              ::testing::HasSubstr("--t1-bytes"));
  EXPECT_THAT(RefusalOf<NodeOptions>({"--scrub-rate=0B"}),
              ::testing::HasSubstr("--scrub-rate"));
  EXPECT_THAT(RefusalOf<NodeOptions>({"--t2-bytes=1MiB"}),
              ::testing::HasSubstr("--t2-bytes"));
  EXPECT_EQ(RefusalOf<NodeOptions>({"--t2-bytes=64MiB"}), "");
}

}  // namespace
}  // namespace farkv

#include "common/transport/ucx/ucx_transport.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

// DESIGN 13: never shared memory, the map is the way on one host. That no
// remote access is enabled either is a rule of check_tree.py.
TEST(UcxOptionsTest, TheTransportsAreTcpAndSelf) {
  EXPECT_EQ(UcxOptions().tls, "tcp,self");
}

}  // namespace
}  // namespace farkv

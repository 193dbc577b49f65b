#include "common/rpc/key_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "common/rpc/credentials.h"
#include "tests/unit/rpc/self_signed.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

const TlsOptions kTls{"", "node.pem", "node.key"};

TEST(KeyPairTest, ACertificateAndItsKeyBelongTogether) {
  const SelfSigned pair, other;

  EXPECT_TRUE(CheckKeyPair(kTls, pair.cert, pair.key).ok());
  // The rest of a chain does not count.
  EXPECT_TRUE(CheckKeyPair(kTls, pair.cert + other.cert, pair.key).ok());
}

TEST(KeyPairTest, AKeyOfAnotherCertificateIsRefusedNamingBothFiles) {
  const SelfSigned pair, other;

  const absl::Status status = CheckKeyPair(kTls, pair.cert, other.key);

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--tls-cert \"node.pem\" and --tls-key \"node.key\" do "
                        "not belong together"));
}

TEST(KeyPairTest, AFileWithoutACertificateOrAKeyIsRefusedByItsFlag) {
  const SelfSigned pair;

  EXPECT_THAT(std::string(CheckKeyPair(kTls, pair.key, pair.key).message()),
              HasSubstr("--tls-cert: \"node.pem\""));
  EXPECT_THAT(std::string(CheckKeyPair(kTls, pair.cert, "junk").message()),
              HasSubstr("--tls-key: \"node.key\""));
}

// Servers and clients alike.
TEST(KeyPairTest, NoCredentialsAreMadeOfAPairThatIsNone) {
  const SelfSigned pair, other;
  const std::string base =
      ::testing::TempDir() + "/key_pair_test_" + std::to_string(getpid());
  const TlsOptions tls{"", base + ".pem", base + ".key"};
  std::ofstream(tls.cert_file) << pair.cert;
  std::ofstream(tls.key_file) << other.key;

  EXPECT_THAT(std::string(MakeServerCredentials(tls).status().message()),
              HasSubstr(tls.key_file));
  EXPECT_THAT(std::string(MakeChannelCredentials(tls).status().message()),
              HasSubstr(tls.cert_file));
  std::ofstream(tls.key_file) << pair.key;
  EXPECT_TRUE(MakeServerCredentials(tls).ok());
  EXPECT_TRUE(MakeChannelCredentials(tls).ok());
}

}  // namespace
}  // namespace farkv

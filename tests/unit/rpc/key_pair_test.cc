#include "common/rpc/key_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "common/rpc/credentials.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// A fresh key and a certificate of it, PEM.
struct Pair {
  Pair() {
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair(
        EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), &X509_free);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), pair.get());
    X509_sign(made.get(), pair.get(), EVP_sha256());
    const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()),
                                                  &BIO_free);
    PEM_write_bio_X509(bio.get(), made.get());
    cert = TextOf(bio.get());
    const std::unique_ptr<BIO, int (*)(BIO*)> other(BIO_new(BIO_s_mem()),
                                                    &BIO_free);
    PEM_write_bio_PrivateKey(other.get(), pair.get(), nullptr, nullptr, 0,
                             nullptr, nullptr);
    key = TextOf(other.get());
  }
  std::string cert, key;
};

const TlsOptions kTls{"", "node.pem", "node.key"};

TEST(KeyPairTest, ACertificateAndItsKeyBelongTogether) {
  const Pair pair, other;

  EXPECT_TRUE(CheckKeyPair(kTls, pair.cert, pair.key).ok());
  // The rest of a chain does not count.
  EXPECT_TRUE(CheckKeyPair(kTls, pair.cert + other.cert, pair.key).ok());
}

TEST(KeyPairTest, AKeyOfAnotherCertificateIsRefusedNamingBothFiles) {
  const Pair pair, other;

  const absl::Status status = CheckKeyPair(kTls, pair.cert, other.key);

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--tls-cert \"node.pem\" and --tls-key \"node.key\" do "
                        "not belong together"));
}

TEST(KeyPairTest, AFileWithoutACertificateOrAKeyIsRefusedByItsFlag) {
  const Pair pair;

  EXPECT_THAT(std::string(CheckKeyPair(kTls, pair.key, pair.key).message()),
              HasSubstr("--tls-cert: \"node.pem\""));
  EXPECT_THAT(std::string(CheckKeyPair(kTls, pair.cert, "junk").message()),
              HasSubstr("--tls-key: \"node.key\""));
}

// Servers and clients alike.
TEST(KeyPairTest, NoCredentialsAreMadeOfAPairThatIsNone) {
  const Pair pair, other;
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

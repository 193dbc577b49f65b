#include "common/rpc/key_pair.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

// Nobody is asked for a passphrase.
int NoPassphrase(char*, int, int, void*) { return 0; }

std::unique_ptr<BIO, int (*)(BIO*)> ReaderOf(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          &BIO_free};
}

}  // namespace

absl::Status CheckKeyPair(const TlsOptions& tls, const std::string& cert,
                          const std::string& key) {
  const absl::Cleanup forget_errors = [] { ERR_clear_error(); };
  const auto cert_reader = ReaderOf(cert);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_bio_X509(cert_reader.get(), nullptr, &NoPassphrase, nullptr),
      &X509_free);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-cert: \"", tls.cert_file, "\" holds no certificate (PEM)"));
  }
  const auto key_reader = ReaderOf(key);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> private_key(
      PEM_read_bio_PrivateKey(key_reader.get(), nullptr, &NoPassphrase,
                              nullptr),
      &EVP_PKEY_free);
  if (private_key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key: \"", tls.key_file,
                     "\" holds no private key (PEM, without a passphrase)"));
  }
  if (X509_check_private_key(certificate.get(), private_key.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-cert \"", tls.cert_file, "\" and --tls-key \"", tls.key_file,
        "\" do not belong together: the key is not the certificate's"));
  }
  return absl::OkStatus();
}

}  // namespace farkv

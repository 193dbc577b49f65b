// Keys and certificates for tests of credentials.
#ifndef FARKV_TESTS_UNIT_RPC_SELF_SIGNED_H_
#define FARKV_TESTS_UNIT_RPC_SELF_SIGNED_H_

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace farkv {

inline std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// A fresh key and a certificate of it for localhost, signed by itself: PEM.
struct SelfSigned {
  SelfSigned() {
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair(
        EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), &X509_free);
    X509_set_version(made.get(), 2);
    X509_NAME* name = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(
        name, "CN", MBSTRING_ASC,
        reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), pair.get());
    const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> names(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                            "DNS:localhost,IP:127.0.0.1"),
        &X509_EXTENSION_free);
    X509_add_ext(made.get(), names.get(), -1);
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

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_RPC_SELF_SIGNED_H_

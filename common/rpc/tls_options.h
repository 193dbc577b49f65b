// Where the certificates of a process lie. All paths empty: plaintext. With a
// CA and a key pair a server asks its clients for certificates (mutual TLS).
#ifndef FARKV_COMMON_RPC_TLS_OPTIONS_H_
#define FARKV_COMMON_RPC_TLS_OPTIONS_H_

#include <string>

namespace farkv {

struct TlsOptions {
  std::string ca_file;    // PEM, whom to trust
  std::string cert_file;  // PEM, own certificate chain
  std::string key_file;   // PEM, own private key

  bool enabled() const {
    return !ca_file.empty() || !cert_file.empty() || !key_file.empty();
  }
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_TLS_OPTIONS_H_

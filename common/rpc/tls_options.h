// Where the certificates of a process lie. All paths empty: plaintext. With a
// CA and a key pair a server asks its clients for certificates (mutual TLS).
// Files that change are read again: connections made from then on use them,
// open ones go on. Certificate and key should be replaced at once (as a Secret
// that is mounted is, or by a rename of their folder's link): between the one
// and the other no new connection can be made.
#ifndef FARKV_COMMON_RPC_TLS_OPTIONS_H_
#define FARKV_COMMON_RPC_TLS_OPTIONS_H_

#include <string>

#include "absl/time/time.h"

namespace farkv {

struct TlsOptions {
  std::string ca_file;    // PEM, whom to trust
  std::string cert_file;  // PEM, own certificate chain
  std::string key_file;   // PEM, own private key
  // How often the files are looked at; whole seconds, at least one.
  absl::Duration refresh = absl::Seconds(10);

  bool enabled() const {
    return !ca_file.empty() || !cert_file.empty() || !key_file.empty();
  }
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_TLS_OPTIONS_H_

// Whether a certificate and a private key belong together. gRPC only says
// "Invalid private key", and only when it is asked to listen or to connect.
// Pure; thread-safe.
#ifndef FARKV_COMMON_RPC_KEY_PAIR_H_
#define FARKV_COMMON_RPC_KEY_PAIR_H_

#include <string>

#include "absl/status/status.h"
#include "common/rpc/tls_options.h"

namespace farkv {

// `cert` and `key`: the text (PEM) of the files that `tls` names. Of a chain
// the first certificate counts. INVALID_ARGUMENT naming the flag and file that
// holds none, or both files when they are not of one pair.
absl::Status CheckKeyPair(const TlsOptions& tls, const std::string& cert,
                          const std::string& key);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_KEY_PAIR_H_

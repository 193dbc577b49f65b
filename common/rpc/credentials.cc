#include "common/rpc/credentials.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/key_pair.h"

namespace farkv {
namespace {

absl::StatusOr<std::string> ReadPem(const char* flag, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": cannot read \"", path, "\""));
  }
  return text.str();
}

struct Pems {
  std::string ca, cert, key;
};

absl::StatusOr<Pems> ReadPems(const TlsOptions& tls) {
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError(
        "--tls-cert and --tls-key must be given together");
  }
  Pems pems;
  FARKV_ASSIGN_OR_RETURN(pems.ca, ReadPem("--tls-ca", tls.ca_file));
  FARKV_ASSIGN_OR_RETURN(pems.cert, ReadPem("--tls-cert", tls.cert_file));
  FARKV_ASSIGN_OR_RETURN(pems.key, ReadPem("--tls-key", tls.key_file));
  if (!tls.cert_file.empty()) {
    FARKV_RETURN_IF_ERROR(CheckKeyPair(tls, pems.cert, pems.key));
  }
  return pems;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsOptions& tls) {
  if (!tls.enabled()) return grpc::InsecureServerCredentials();
  if (tls.cert_file.empty()) {
    return absl::InvalidArgumentError(
        "a server with --tls-ca also needs --tls-cert and --tls-key");
  }
  FARKV_ASSIGN_OR_RETURN(const Pems pems, ReadPems(tls));
  grpc::SslServerCredentialsOptions options;
  options.pem_root_certs = pems.ca;
  options.pem_key_cert_pairs.push_back({pems.key, pems.cert});
  if (!pems.ca.empty()) {
    options.client_certificate_request =
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const TlsOptions& tls) {
  if (!tls.enabled()) return grpc::InsecureChannelCredentials();
  FARKV_ASSIGN_OR_RETURN(const Pems pems, ReadPems(tls));
  return grpc::SslCredentials({pems.ca, pems.key, pems.cert});
}

}  // namespace farkv

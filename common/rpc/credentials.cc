#include "common/rpc/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

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

// What is wrong with the files now; gRPC would say it at the first handshake.
absl::Status CheckFiles(const TlsOptions& tls) {
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError(
        "--tls-cert and --tls-key must be given together");
  }
  FARKV_RETURN_IF_ERROR(ReadPem("--tls-ca", tls.ca_file).status());
  FARKV_ASSIGN_OR_RETURN(const std::string cert,
                         ReadPem("--tls-cert", tls.cert_file));
  FARKV_ASSIGN_OR_RETURN(const std::string key,
                         ReadPem("--tls-key", tls.key_file));
  if (tls.cert_file.empty()) return absl::OkStatus();
  return CheckKeyPair(tls, cert, key);
}

std::shared_ptr<grpc::experimental::CertificateProviderInterface> FilesOf(
    const TlsOptions& tls) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      tls.key_file, tls.cert_file, tls.ca_file,
      static_cast<unsigned int>(tls.refresh / absl::Seconds(1)));
}

void Watch(const TlsOptions& tls,
           grpc::experimental::TlsCredentialsOptions& options) {
  if (!tls.ca_file.empty()) options.watch_root_certs();
  if (!tls.cert_file.empty()) options.watch_identity_key_cert_pairs();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsOptions& tls) {
  if (!tls.enabled()) return grpc::InsecureServerCredentials();
  if (tls.cert_file.empty()) {
    return absl::InvalidArgumentError(
        "a server with --tls-ca also needs --tls-cert and --tls-key");
  }
  FARKV_RETURN_IF_ERROR(CheckFiles(tls));
  grpc::experimental::TlsServerCredentialsOptions options(FilesOf(tls));
  Watch(tls, options);
  if (!tls.ca_file.empty()) {
    options.set_cert_request_type(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const TlsOptions& tls) {
  if (!tls.enabled()) return grpc::InsecureChannelCredentials();
  FARKV_RETURN_IF_ERROR(CheckFiles(tls));
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(FilesOf(tls));
  Watch(tls, options);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace farkv

// The one HTTP port of a process: /metrics, /healthz (alive), /readyz (takes
// work). civetweb serves it. Thread-safe.
#ifndef FARKV_COMMON_TELEMETRY_HTTP_SERVER_H_
#define FARKV_COMMON_TELEMETRY_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/telemetry/metrics.h"

namespace farkv {

class HttpServer {
 public:
  struct Impl;

  // `refresh` runs before each scrape (gauges from snapshots) and may be
  // empty. ALREADY_EXISTS naming the address when it is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, const Metrics& metrics,
      std::function<void()> refresh);
  ~HttpServer();

  uint16_t port() const;
  void SetReady(bool ready);

 private:
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TELEMETRY_HTTP_SERVER_H_

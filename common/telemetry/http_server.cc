#include "common/telemetry/http_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>

#include "absl/strings/str_cat.h"

namespace farkv {

struct HttpServer::Impl {
  const Metrics* metrics = nullptr;
  std::function<void()> refresh;
  std::atomic<bool> ready{false};
  mg_context* context = nullptr;
  uint16_t port = 0;

  ~Impl() {
    if (context != nullptr) Stop();
  }
  void Stop();
};

namespace {

constexpr std::chrono::milliseconds kPokeInterval(20);

// A connection has a thread until its request is read, for so many
// milliseconds at most: a few that send nothing must not keep a probe from its
// answer.
constexpr char kThreads[] = "32";
constexpr char kRequestMs[] = "2000";

// Opens a connection to a listener of this process and drops it.
void Poke(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  close(fd);
}

int Answer(mg_connection* connection, int code, const char* reason,
           const std::string& type, const std::string& body) {
  const std::string head = absl::StrCat(
      "HTTP/1.1 ", code, " ", reason, "\r\nContent-Type: ", type,
      "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n\r\n");
  mg_write(connection, head.data(), head.size());
  mg_write(connection, body.data(), body.size());
  return code;
}

int ServeMetrics(mg_connection* connection, void* data) {
  auto* impl = static_cast<HttpServer::Impl*>(data);
  if (impl->refresh) impl->refresh();
  return Answer(connection, 200, "OK", "text/plain; version=0.0.4",
                impl->metrics->Render());
}

int ServeAlive(mg_connection* connection, void*) {
  return Answer(connection, 200, "OK", "text/plain", "ok\n");
}

int ServeReady(mg_connection* connection, void* data) {
  const bool ready = static_cast<HttpServer::Impl*>(data)->ready;
  return ready ? Answer(connection, 200, "OK", "text/plain", "ready\n")
               : Answer(connection, 503, "Service Unavailable", "text/plain",
                        "not ready\n");
}

}  // namespace

// civetweb looks for the stop every two seconds, or when a connection arrives.
void HttpServer::Impl::Stop() {
  std::future<void> stopped =
      std::async(std::launch::async, [this] { mg_stop(context); });
  while (stopped.wait_for(kPokeInterval) != std::future_status::ready) {
    Poke(port);
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const std::string& address, const Metrics& metrics,
    std::function<void()> refresh) {
  auto impl = std::make_unique<Impl>();
  impl->metrics = &metrics;
  impl->refresh = std::move(refresh);
  const std::array<const char*, 7> options = {
      "listening_ports",    address.c_str(), "num_threads", kThreads,
      "request_timeout_ms", kRequestMs,      nullptr};
  mg_callbacks callbacks;
  std::memset(&callbacks, 0, sizeof(callbacks));
  impl->context = mg_start(&callbacks, impl.get(),
                           const_cast<const char**>(options.data()));
  mg_server_port port;
  if (impl->context == nullptr ||
      mg_get_server_ports(impl->context, 1, &port) < 1) {
    return absl::AlreadyExistsError(absl::StrCat(
        "cannot serve HTTP on ", address,
        ": the port is taken or the address is not of this machine"));
  }
  impl->port = static_cast<uint16_t>(port.port);
  mg_set_request_handler(impl->context, "/metrics", ServeMetrics, impl.get());
  mg_set_request_handler(impl->context, "/healthz", ServeAlive, impl.get());
  mg_set_request_handler(impl->context, "/readyz", ServeReady, impl.get());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port; }
void HttpServer::SetReady(bool ready) { impl_->ready = ready; }

}  // namespace farkv

#include "common/telemetry/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

class HttpServerTest : public ::testing::Test {
 protected:
  ~HttpServerTest() override {
    for (const int connection : connections_) close(connection);
  }

  int Connect() {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    connections_.push_back(connection);
    return connection;
  }

  // The whole answer; what has come of it when nothing more comes for a second.
  std::string Get(const std::string& path) {
    const int connection = Connect();
    const timeval second{1, 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n\r\n");
    EXPECT_EQ(send(connection, request.data(), request.size(), 0),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char bytes[4096];
    for (ssize_t n; (n = recv(connection, bytes, sizeof(bytes), 0)) > 0;) {
      answer.append(bytes, static_cast<size_t>(n));
    }
    return answer;
  }

  Metrics metrics_;
  const std::unique_ptr<HttpServer> server_ =
      HttpServer::Start("127.0.0.1:0", metrics_, {}).value();
  std::vector<int> connections_;
};

TEST_F(HttpServerTest, ReadinessIsWhatWasSet) {
  EXPECT_THAT(Get("/readyz"), ::testing::HasSubstr("503"));
  server_->SetReady(true);
  EXPECT_THAT(Get("/readyz"), ::testing::HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, ConnectionsThatSendNothingDoNotHoldUpAProbe) {
  for (int i = 0; i < 20; ++i) Connect();

  EXPECT_THAT(Get("/healthz"), ::testing::HasSubstr("200 OK"));
}

TEST(HttpServerStartTest, ATakenPortIsNamed) {
  Metrics metrics;
  const auto first = HttpServer::Start("127.0.0.1:0", metrics, {});
  ASSERT_TRUE(first.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());

  const auto second = HttpServer::Start(address, metrics, {});

  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              ::testing::HasSubstr(address));
}

}  // namespace
}  // namespace farkv

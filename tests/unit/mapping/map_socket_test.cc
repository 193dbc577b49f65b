#include "common/mapping/map_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/mapping/map_server_fixture.h"
#include "tests/unit/mapping/raw_socket.h"

namespace farkv {
namespace {

using testing::ConnectRaw;
using ::testing::HasSubstr;
using testing::kSlabId;
using testing::ListenRaw;

class MapServerTest : public testing::MapServerFixture {
 protected:
  absl::Status StartStatus() {
    return MapServer::Start(
               options_,
               [this](const MapRequest& request, const PeerCredentials&) {
                 return Grant(request);
               })
        .status();
  }
  std::string SocketPath() const { return dir_.Sub("node-a.sock"); }

  // What the server answers to `bytes`, or an error when it only closes.
  static absl::StatusOr<MapReply> Ask(const std::string& path,
                                      std::span<const std::byte> bytes) {
    const UniqueFd socket = ConnectRaw(path);
    EXPECT_TRUE(socket.valid());
    EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    MapReplyBytes reply;
    const ssize_t received = recv(socket.get(), reply.data(), reply.size(), 0);
    if (received <= 0) return absl::UnavailableError("no answer");
    return DecodeMapReply({reply.data(), static_cast<size_t>(received)});
  }
};

TEST_F(MapServerTest, ItsSocketIsForOwnerAndGroupAndGoesWithIt) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  struct stat info;
  ASSERT_EQ(stat(SocketPath().c_str(), &info), 0);

  EXPECT_EQ(server->path(), SocketPath());
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  server->Stop();
  EXPECT_FALSE(std::filesystem::exists(SocketPath()));
  server->Stop();
}

TEST_F(MapServerTest, TheHandlerLearnsWhoAsks) {
  PeerCredentials seen;
  std::unique_ptr<MapServer> server =
      StartOrDie([&](const MapRequest& request, const PeerCredentials& peer) {
        seen = peer;
        return Grant(request);
      });
  ASSERT_NE(server, nullptr);

  const auto bytes = EncodeMapRequest(Request());
  const auto reply = Ask(server->path(), *bytes);
  server->Stop();

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->status.ok());
  EXPECT_EQ(seen.pid, getpid());
  EXPECT_EQ(seen.uid, getuid());
  EXPECT_EQ(seen.gid, getgid());
}

TEST_F(MapServerTest, RequestsOfTheWrongShapeAreAnsweredAndDropped) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const auto good = EncodeMapRequest(Request());
  std::vector<std::byte> longer(good->begin(), good->end());
  longer.resize(4000);
  MapRequestBytes future = *good;
  future[4] = std::byte{9};

  const auto short_reply =
      Ask(server->path(), std::span(*good).first(kMapRequestBytes - 1));
  const auto long_reply = Ask(server->path(), longer);
  const auto version_reply = Ask(server->path(), future);
  const auto good_reply = Ask(server->path(), *good);

  ASSERT_TRUE(short_reply.ok() && long_reply.ok() && version_reply.ok());
  EXPECT_EQ(short_reply->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(long_reply->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(version_reply->status.code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(good_reply.ok()) << good_reply.status();
  EXPECT_TRUE(good_reply->status.ok());
}

TEST_F(MapServerTest, ASilentConnectionIsClosedAtItsDeadline) {
  options_.request_timeout = absl::Milliseconds(20);
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const UniqueFd silent = ConnectRaw(server->path());

  char byte = 0;
  const ssize_t received = recv(silent.get(), &byte, 1, 0);

  EXPECT_EQ(received, 0);  // closed by the server
}

TEST_F(MapServerTest, SilentConnectionsCannotKeepOthersOut) {
  options_.max_connections = 2;
  // Time enough for a client that does ask, on a busy machine too.
  options_.request_timeout = absl::Seconds(5);
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(ConnectRaw(server->path()));

  const auto reply = Ask(server->path(), *EncodeMapRequest(Request()));

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->status.ok()) << reply->status;
}

TEST_F(MapServerTest, PeersThatLeaveEarlyDoNoHarm) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const auto bytes = EncodeMapRequest(Request());
  for (int i = 0; i < 20; ++i) {
    const UniqueFd socket = ConnectRaw(server->path());
    if (i % 2 == 0) {
      send(socket.get(), bytes->data(), bytes->size(), MSG_NOSIGNAL);
    }
  }

  const auto reply = Ask(server->path(), *bytes);

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->status.ok());
}

TEST_F(MapServerTest, StopDoesNotWaitForOpenConnections) {
  options_.request_timeout = absl::Hours(1);
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const UniqueFd silent = ConnectRaw(server->path());

  server->Stop();

  char byte = 0;
  EXPECT_LE(recv(silent.get(), &byte, 1, 0), 0);
}

TEST_F(MapServerTest, AStaleSocketIsReplaced) {
  // Bound and closed without unlinking, as a killed process leaves it.
  ASSERT_TRUE(ListenRaw(SocketPath(), 1).valid());
  ASSERT_TRUE(std::filesystem::exists(SocketPath()));

  std::unique_ptr<MapServer> server = StartOrDie();

  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(Ask(server->path(), *EncodeMapRequest(Request())).ok());
}

TEST_F(MapServerTest, ALiveSocketIsLeftAlone) {
  std::unique_ptr<MapServer> first = StartOrDie();
  ASSERT_NE(first, nullptr);

  const absl::Status second = StartStatus();

  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr(SocketPath()));
  EXPECT_TRUE(Ask(first->path(), *EncodeMapRequest(Request())).ok());
}

TEST_F(MapServerTest, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(SocketPath()) << "precious";

  const absl::Status status = StartStatus();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(SocketPath()));
  EXPECT_EQ(std::filesystem::file_size(SocketPath()), 8u);
}

TEST_F(MapServerTest, AMissingDirectoryIsNamed) {
  options_.map_dir = dir_.Sub("missing");

  const absl::Status status = StartStatus();

  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(dir_.Sub("missing/node-a.sock")));
}

TEST_F(MapServerTest, ADirectoryWhereNoFileCanBeMadeIsNamed) {
  options_.map_dir = "/proc";  // not even for root

  const absl::Status status = StartStatus();

  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("map socket /proc/node-a.sock: bind"));
}

TEST_F(MapServerTest, APathThatIsTooLongIsNamed) {
  options_.node_id = std::string(100, 'n');

  const absl::Status status = StartStatus();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("must have 1 to 107"));
}

TEST_F(MapServerTest, AnotherServersSocketSurvivesThisOnesEnd) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  std::filesystem::remove(SocketPath());
  const UniqueFd other = ListenRaw(SocketPath(), 1);
  ASSERT_TRUE(other.valid());

  server->Stop();

  EXPECT_TRUE(std::filesystem::exists(SocketPath()));
}

TEST_F(MapServerTest, OfManyStartersOverAStaleSocketExactlyOneWins) {
  ASSERT_TRUE(ListenRaw(SocketPath(), 1).valid());
  std::vector<absl::Status> statuses(8);
  std::vector<std::unique_ptr<MapServer>> servers(8);
  std::vector<std::thread> starters;
  for (size_t i = 0; i < 8; ++i) {
    starters.emplace_back([this, i, &statuses, &servers] {
      auto server = MapServer::Start(
          options_, [this](const MapRequest& request, const PeerCredentials&) {
            return Grant(request);
          });
      statuses[i] = server.status();
      if (server.ok()) servers[i] = *std::move(server);
    });
  }
  for (std::thread& starter : starters) starter.join();

  int winners = 0;
  for (const absl::Status& status : statuses) {
    if (status.ok()) {
      ++winners;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
    }
  }
  EXPECT_EQ(winners, 1);
  EXPECT_TRUE(Ask(SocketPath(), *EncodeMapRequest(Request())).ok());
}

}  // namespace
}  // namespace farkv

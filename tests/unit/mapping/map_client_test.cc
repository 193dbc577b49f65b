#include "common/mapping/map_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/mapping/map_server_fixture.h"
#include "tests/unit/mapping/raw_socket.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using testing::kSlabBytes;
using testing::kSlabId;
using testing::ListenRaw;

constexpr absl::Duration kLimit = absl::Seconds(60);

class MapClientTest : public testing::MapServerFixture {
 protected:
  std::string SocketPath() const { return dir_.Sub("node-a.sock"); }

  // A server whose grants are whatever `grant` makes.
  std::unique_ptr<MapServer> Granting(std::function<MapGrant()> grant) {
    return StartOrDie(
        [grant = std::move(grant)](const MapRequest&, const PeerCredentials&) {
          return absl::StatusOr<MapGrant>(grant());
        });
  }
};

UniqueFd PlainMemfd(size_t size_bytes, int seals) {
  UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size_bytes)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST_F(MapClientTest, AFetchedSlabShowsWhatTheOwnerWrites) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);

  const auto slab = client.Fetch(Request());

  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ((*slab)->size_bytes(), kSlabBytes);
  slab_->base()[12345] = std::byte{77};
  EXPECT_EQ((*slab)->base()[12345], std::byte{77});
}

TEST_F(MapClientTest, AReaderCannotMakeItsMappingWritable) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);
  const auto slab = client.Fetch(Request());
  ASSERT_TRUE(slab.ok()) << slab.status();

  const int result = mprotect(const_cast<std::byte*>((*slab)->base()),
                              kSlabBytes, PROT_READ | PROT_WRITE);

  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EACCES);
}

TEST_F(MapClientTest, ASlabIsFetchedOnceAndKept) {
  std::atomic<int> grants = 0;
  std::unique_ptr<MapServer> server =
      StartOrDie([&](const MapRequest& request, const PeerCredentials&) {
        ++grants;
        return Grant(request);
      });
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);

  const auto first = client.Fetch(Request());
  const auto second = client.Fetch(Request());

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(grants, 1);
  EXPECT_EQ(client.num_slabs(), 1u);
  EXPECT_EQ(client.mapped_bytes(), kSlabBytes);
}

TEST_F(MapClientTest, AForgottenSlabStaysMappedForItsReaders) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);
  auto held = client.Fetch(Request());
  ASSERT_TRUE(held.ok()) << held.status();
  slab_->base()[0] = std::byte{3};

  client.Forget(kSlabId);
  server->Stop();
  slab_.reset();

  EXPECT_EQ(client.num_slabs(), 0u);
  EXPECT_EQ((*held)->base()[0], std::byte{3});
  const void* base = (*held)->base();
  held->reset();
  unsigned char resident = 0;
  EXPECT_EQ(mincore(const_cast<void*>(base), 4096, &resident), -1);
  EXPECT_EQ(errno, ENOMEM);  // unmapped
}

TEST_F(MapClientTest, TheNodesRefusalArrivesAsItIs) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);

  EXPECT_EQ(client.Fetch(Request(kSlabId, "bad")).status(),
            absl::PermissionDeniedError("token is not of this session"));
  EXPECT_EQ(client.Fetch(Request(6)).status(),
            absl::NotFoundError("no slab 6"));
  EXPECT_EQ(client.num_slabs(), 0u);
}

TEST_F(MapClientTest, ASlabWithoutEverySealIsRefused) {
  std::unique_ptr<MapServer> server = Granting([] {
    return MapGrant{PlainMemfd(kSlabBytes, F_SEAL_SHRINK | F_SEAL_GROW),
                    kSlabBytes};
  });
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);

  const absl::Status status = client.Fetch(Request()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("seals 0x6, needs"));
}

TEST_F(MapClientTest, ASlabOfAnotherSizeThanSaidIsRefused) {
  std::unique_ptr<MapServer> server = Granting([] {
    return MapGrant{PlainMemfd(8192, kSlabSeals), kSlabBytes};
  });
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);

  const absl::Status status = client.Fetch(Request()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("8192 bytes, the node said 1048576"));
}

TEST_F(MapClientTest, ADescriptorThatIsNoMemfdIsRefused) {
  std::unique_ptr<MapServer> server = Granting([] {
    return MapGrant{UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC)),
                    kSlabBytes};
  });
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);

  EXPECT_EQ(client.Fetch(Request()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(MapClientTest, AnAnswerWithoutDescriptorIsRefused) {
  const UniqueFd listener = ListenRaw(SocketPath(), 4);
  ASSERT_TRUE(listener.valid());
  std::thread server([&] {
    const UniqueFd peer(accept(listener.get(), nullptr, nullptr));
    MapRequestBytes request;
    EXPECT_GT(recv(peer.get(), request.data(), request.size(), 0), 0);
    MapReply reply;
    reply.slab_id = kSlabId;
    reply.size_bytes = kSlabBytes;
    const MapReplyBytes bytes = EncodeMapReply(reply);
    EXPECT_GT(send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  });
  MapClient client(SocketPath(), kLimit);

  const absl::Status status = client.Fetch(Request()).status();
  server.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("0 descriptors came with the reply, expected 1"));
}

TEST_F(MapClientTest, ASilentNodeIsGivenUpAtTheDeadline) {
  // The kernel accepts into the backlog; nobody ever answers.
  const UniqueFd listener = ListenRaw(SocketPath(), 4);
  ASSERT_TRUE(listener.valid());
  MapClient client(SocketPath(), absl::Milliseconds(30));

  const absl::Status status = client.Fetch(Request()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(SocketPath()));
}

TEST_F(MapClientTest, AFullBacklogIsGivenUpAtTheDeadline) {
  const UniqueFd listener = ListenRaw(SocketPath(), 0);
  ASSERT_TRUE(listener.valid());
  const UniqueFd fills = testing::ConnectRaw(SocketPath());
  ASSERT_TRUE(fills.valid());
  MapClient client(SocketPath(), absl::Milliseconds(30));

  const absl::Status status = client.Fetch(Request()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(MapClientTest, AMissingOrDeadSocketIsUnavailable) {
  MapClient client(SocketPath(), kLimit);
  const absl::Status missing = client.Fetch(Request()).status();
  ASSERT_TRUE(ListenRaw(SocketPath(), 1).valid());
  const absl::Status dead = client.Fetch(Request()).status();

  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable) << missing;
  EXPECT_EQ(dead.code(), absl::StatusCode::kUnavailable) << dead;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(SocketPath()));
}

TEST_F(MapClientTest, ThreadsThatFetchTheSameSlabShareOneMapping) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);
  std::vector<std::shared_ptr<const MappedSlab>> slabs(8);
  std::vector<std::thread> readers;
  for (size_t i = 0; i < slabs.size(); ++i) {
    readers.emplace_back([&, i] {
      auto slab = client.Fetch(Request());
      if (slab.ok()) slabs[i] = *std::move(slab);
    });
  }
  for (std::thread& reader : readers) reader.join();

  for (const auto& slab : slabs) EXPECT_EQ(slab, slabs[0]);
  EXPECT_NE(slabs[0], nullptr);
  EXPECT_EQ(client.num_slabs(), 1u);
}

TEST_F(MapClientTest, NoDescriptorStaysOpenBehindFetches) {
  std::unique_ptr<MapServer> server = StartOrDie();
  ASSERT_NE(server, nullptr);
  MapClient client(server->path(), kLimit);
  ASSERT_TRUE(client.Fetch(Request()).ok());
  const UniqueFd before(dup(0));

  for (int i = 0; i < 50; ++i) {
    client.Forget(kSlabId);
    ASSERT_TRUE(client.Fetch(Request()).ok());
  }
  server->Stop();
  const UniqueFd after(dup(0));

  // Descriptors are numbered from the lowest free one.
  EXPECT_LE(after.get(), before.get() + 1);
}

}  // namespace
}  // namespace farkv

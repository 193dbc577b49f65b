// A map server with one slab in a directory of its own. Test only.
#ifndef FARKV_TESTS_UNIT_MAPPING_MAP_SERVER_FIXTURE_H_
#define FARKV_TESTS_UNIT_MAPPING_MAP_SERVER_FIXTURE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mapping/map_client.h"
#include "common/mapping/map_socket.h"
#include "common/mapping/memfd_slab.h"
#include "gtest/gtest.h"
#include "tests/unit/mapping/temp_dir.h"

namespace farkv::testing {

inline constexpr uint32_t kSlabId = 5;
inline constexpr size_t kSlabBytes = size_t{1} << 20;

class MapServerFixture : public ::testing::Test {
 protected:
  MapServerFixture() {
    MemfdSlabOptions options;
    options.size_bytes = kSlabBytes;
    absl::StatusOr<MemfdSlab> slab = MemfdSlab::Create(options);
    if (!slab.ok()) ADD_FAILURE() << slab.status();
    slab_.emplace(*std::move(slab));
    options_.map_dir = dir_.path();
    options_.node_id = "node-a";
  }

  // Grants slab 5 to the token "good".
  absl::StatusOr<MapGrant> Grant(const MapRequest& request) const {
    if (request.token != "good") {
      return absl::PermissionDeniedError("token is not of this session");
    }
    if (request.slab_id != kSlabId) {
      return absl::NotFoundError(absl::StrCat("no slab ", request.slab_id));
    }
    absl::StatusOr<UniqueFd> fd = slab_->DuplicateFd();
    if (!fd.ok()) return fd.status();
    return MapGrant{*std::move(fd), kSlabBytes};
  }

  std::unique_ptr<MapServer> StartOrDie(MapHandler handler = nullptr) {
    if (!handler) {
      handler = [this](const MapRequest& request, const PeerCredentials&) {
        return Grant(request);
      };
    }
    auto server = MapServer::Start(options_, std::move(handler));
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  static MapRequest Request(uint32_t slab_id = kSlabId,
                            const std::string& token = "good") {
    MapRequest request;
    request.session.bytes[0] = 9;
    request.token = token;
    request.slab_id = slab_id;
    return request;
  }

  TempDir dir_;
  std::optional<MemfdSlab> slab_;
  MapServerOptions options_;
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_MAPPING_MAP_SERVER_FIXTURE_H_

// The handshake on a node's map socket, version 1: one fixed request, one
// fixed reply, each one message of a SOCK_SEQPACKET connection; the slab's
// descriptor rides on the reply (SCM_RIGHTS). Little endian.
//
//   request  offset size        reply   offset size
//     magic "FKVS"  0    4        magic "FKVS"      0    4
//     version (1)   4    2        version (1)       4    2
//     token bytes   6    2        message bytes     6    2
//     slab id       8    4        slab id           8    4
//     zero         12    4        status code      12    4
//     session id   16   16        slab bytes       16    8
//     token        32   64        message          24  104
//   96 bytes                    128 bytes
//
// Pure; thread-compatible.
#ifndef FARKV_COMMON_MAPPING_MAP_PROTOCOL_H_
#define FARKV_COMMON_MAPPING_MAP_PROTOCOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace farkv {

inline constexpr uint32_t kMapMagic = 0x53564b46;  // "FKVS"
inline constexpr uint16_t kMapVersion = 1;
inline constexpr size_t kMapRequestBytes = 96;
inline constexpr size_t kMapReplyBytes = 128;
inline constexpr size_t kMaxMapTokenBytes = 64;
inline constexpr size_t kMaxMapMessageBytes = 104;

struct MapRequest {
  SessionId session;
  std::string token;  // from OpenSession; opaque here
  uint32_t slab_id = 0;
};

// An error's message is cut to kMaxMapMessageBytes.
struct MapReply {
  absl::Status status;
  uint32_t slab_id = 0;
  uint64_t size_bytes = 0;  // of the slab; 0 with an error
};

using MapRequestBytes = std::array<std::byte, kMapRequestBytes>;
using MapReplyBytes = std::array<std::byte, kMapReplyBytes>;

// INVALID_ARGUMENT when the token is longer than kMaxMapTokenBytes.
absl::StatusOr<MapRequestBytes> EncodeMapRequest(const MapRequest& request);
MapReplyBytes EncodeMapReply(const MapReply& reply);

// INVALID_ARGUMENT naming the field and both values; FAILED_PRECONDITION for
// an unknown version.
absl::StatusOr<MapRequest> DecodeMapRequest(std::span<const std::byte> bytes);
absl::StatusOr<MapReply> DecodeMapReply(std::span<const std::byte> bytes);

// <map-dir>/<node-id>.sock. INVALID_ARGUMENT when the id is not a plain file
// name or the path is longer than a socket address holds.
absl::StatusOr<std::string> MapSocketPath(absl::string_view map_dir,
                                          absl::string_view node_id);
// The same check for a path that a node has told us.
absl::Status CheckSocketPath(absl::string_view path);

}  // namespace farkv

#endif  // FARKV_COMMON_MAPPING_MAP_PROTOCOL_H_

#include "common/mapping/map_protocol.h"

#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

constexpr size_t kVersionAt = 4;
constexpr size_t kTextBytesAt = 6;
constexpr size_t kSlabAt = 8;
constexpr size_t kCodeAt = 12;
constexpr size_t kSessionAt = 16;
constexpr size_t kTokenAt = 32;
constexpr size_t kSizeAt = 16;
constexpr size_t kMessageAt = 24;

// One byte of sun_path is the terminating zero.
constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;

void WriteFront(std::byte* to, size_t text_bytes, uint32_t slab_id) {
  StoreLe(to, kMapMagic);
  StoreLe(to + kVersionAt, kMapVersion);
  StoreLe(to + kTextBytesAt, static_cast<uint16_t>(text_bytes));
  StoreLe(to + kSlabAt, slab_id);
}

// Size, magic, version; the length of the text against `max_text`.
absl::Status CheckFront(const char* what, std::span<const std::byte> bytes,
                        size_t size, size_t max_text) {
  if (bytes.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", bytes.size(), " bytes, must be ", size));
  }
  const auto magic = LoadLe<uint32_t>(bytes.data());
  if (magic != kMapMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": magic is 0x", absl::Hex(magic), ", must be 0x",
                     absl::Hex(kMapMagic)));
  }
  const auto version = LoadLe<uint16_t>(bytes.data() + kVersionAt);
  if (version != kMapVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": version is ", version, ", this side speaks ", kMapVersion));
  }
  const auto text = LoadLe<uint16_t>(bytes.data() + kTextBytesAt);
  if (text > max_text) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": text has ", text, " bytes, at most ", max_text));
  }
  return absl::OkStatus();
}

std::string ReadText(std::span<const std::byte> bytes, size_t offset) {
  const auto count = LoadLe<uint16_t>(bytes.data() + kTextBytesAt);
  std::string text(count, '\0');
  std::memcpy(text.data(), bytes.data() + offset, count);
  return text;
}

}  // namespace

absl::StatusOr<MapRequestBytes> EncodeMapRequest(const MapRequest& request) {
  if (request.token.size() > kMaxMapTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("map request: token has ", request.token.size(),
                     " bytes, at most ", kMaxMapTokenBytes));
  }
  MapRequestBytes bytes{};
  WriteFront(bytes.data(), request.token.size(), request.slab_id);
  std::memcpy(bytes.data() + kSessionAt, request.session.bytes.data(),
              request.session.bytes.size());
  std::memcpy(bytes.data() + kTokenAt, request.token.data(),
              request.token.size());
  return bytes;
}

MapReplyBytes EncodeMapReply(const MapReply& reply) {
  MapReplyBytes bytes{};
  const absl::string_view message = reply.status.message();
  const size_t count = std::min(message.size(), kMaxMapMessageBytes);
  WriteFront(bytes.data(), count, reply.slab_id);
  StoreLe(bytes.data() + kCodeAt, static_cast<uint32_t>(reply.status.code()));
  StoreLe(bytes.data() + kSizeAt, reply.size_bytes);
  if (count > 0) {
    std::memcpy(bytes.data() + kMessageAt, message.data(), count);
  }
  return bytes;
}

absl::StatusOr<MapRequest> DecodeMapRequest(std::span<const std::byte> bytes) {
  FARKV_RETURN_IF_ERROR(
      CheckFront("map request", bytes, kMapRequestBytes, kMaxMapTokenBytes));
  MapRequest request;
  request.slab_id = LoadLe<uint32_t>(bytes.data() + kSlabAt);
  std::memcpy(request.session.bytes.data(), bytes.data() + kSessionAt,
              request.session.bytes.size());
  request.token = ReadText(bytes, kTokenAt);
  return request;
}

absl::StatusOr<MapReply> DecodeMapReply(std::span<const std::byte> bytes) {
  FARKV_RETURN_IF_ERROR(
      CheckFront("map reply", bytes, kMapReplyBytes, kMaxMapMessageBytes));
  const auto code = LoadLe<uint32_t>(bytes.data() + kCodeAt);
  constexpr auto kLastCode =
      static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  if (code > kLastCode) {
    return absl::InvalidArgumentError(absl::StrCat(
        "map reply: status code is ", code, ", at most ", kLastCode));
  }
  MapReply reply;
  reply.status = absl::Status(static_cast<absl::StatusCode>(code),
                              ReadText(bytes, kMessageAt));
  reply.slab_id = LoadLe<uint32_t>(bytes.data() + kSlabAt);
  reply.size_bytes = LoadLe<uint64_t>(bytes.data() + kSizeAt);
  return reply;
}

absl::Status CheckSocketPath(absl::string_view path) {
  if (!path.empty() && path.size() <= kMaxPathBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("map socket \"", path, "\" has ", path.size(),
                   " characters, must have 1 to ", kMaxPathBytes));
}

absl::StatusOr<std::string> MapSocketPath(absl::string_view map_dir,
                                          absl::string_view node_id) {
  const bool plain = !node_id.empty() && node_id.front() != '.' &&
                     node_id.find('/') == absl::string_view::npos &&
                     node_id.find('\0') == absl::string_view::npos;
  if (!plain || map_dir.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("map socket: node id \"", node_id,
                     "\" must be a plain file name and the directory \"",
                     map_dir, "\" not empty"));
  }
  std::string path = absl::StrCat(map_dir, "/", node_id, ".sock");
  FARKV_RETURN_IF_ERROR(CheckSocketPath(path));
  return path;
}

}  // namespace farkv

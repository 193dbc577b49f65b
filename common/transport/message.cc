#include "common/transport/message.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/endian.h"

namespace farkv {
namespace {

constexpr size_t kMagicAt = 0;
constexpr size_t kVersionAt = 4;
constexpr size_t kTypeAt = 6;
constexpr size_t kRequestIdAt = 8;
constexpr size_t kSessionAt = 16;
constexpr size_t kLayerAt = 32;
constexpr size_t kCodeAt = 36;
constexpr size_t kStepAt = 40;
constexpr size_t kEpochAt = 48;
constexpr size_t kBodyBytesAt = 56;
constexpr size_t kZeroAt = 64;
constexpr size_t kCrcAt = 76;

// A request's reply has the type behind it, so the last one can have none.
constexpr uint16_t kFirstType = 1;
constexpr uint16_t kLastType = 0xfffe;
constexpr auto kLastCode =
    static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);

absl::Status BadField(const char* field, uint64_t got, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      "message header: ", field, " is ", got, ", expected ", expected));
}

absl::Status CheckPrefix(std::span<const std::byte> bytes) {
  if (bytes.size() != kMessageHeaderBytes) {
    return BadField("length", bytes.size(), "80");
  }
  if (!HasMagic(bytes)) {
    const uint32_t magic = LoadLe<uint32_t>(&bytes[kMagicAt]);
    return absl::InvalidArgumentError(
        absl::StrCat("message header: magic is 0x", absl::Hex(magic),
                     ", expected 0x", absl::Hex(kMessageMagic)));
  }
  const uint16_t version = LoadLe<uint16_t>(&bytes[kVersionAt]);
  if (version != kMessageVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("message header: version is ", version, ", expected ",
                     kMessageVersion));
  }
  return absl::OkStatus();
}

absl::Status CheckFields(std::span<const std::byte> bytes) {
  const uint16_t type = LoadLe<uint16_t>(&bytes[kTypeAt]);
  if (type < kFirstType || type > kLastType) {
    return BadField("type", type, "1 to 65534");
  }
  const uint32_t code = LoadLe<uint32_t>(&bytes[kCodeAt]);
  if (code > kLastCode) return BadField("status code", code, "0 to 16");
  const auto zeros = bytes.subspan(kZeroAt, kCrcAt - kZeroAt);
  for (std::byte byte : zeros) {
    if (byte != std::byte{0}) {
      return BadField("reserved byte", static_cast<uint64_t>(byte), "0");
    }
  }
  return absl::OkStatus();
}

}  // namespace

EncodedHeader EncodeHeader(const MessageHeader& header,
                           std::span<const std::span<const std::byte>> body) {
  uint64_t body_bytes = 0;
  for (const auto& piece : body) body_bytes += piece.size();
  EncodedHeader bytes{};
  StoreLe<uint32_t>(&bytes[kMagicAt], kMessageMagic);
  StoreLe<uint16_t>(&bytes[kVersionAt], kMessageVersion);
  StoreLe<uint16_t>(&bytes[kTypeAt], static_cast<uint16_t>(header.type));
  StoreLe<uint64_t>(&bytes[kRequestIdAt], header.request_id);
  std::memcpy(&bytes[kSessionAt], header.session.bytes.data(),
              header.session.bytes.size());
  StoreLe<uint32_t>(&bytes[kLayerAt], header.layer);
  StoreLe<uint32_t>(&bytes[kCodeAt], static_cast<uint32_t>(header.code));
  StoreLe<uint64_t>(&bytes[kStepAt], header.step);
  StoreLe<uint64_t>(&bytes[kEpochAt], header.epoch.value);
  StoreLe<uint64_t>(&bytes[kBodyBytesAt], body_bytes);
  uint32_t crc = Crc32c(std::span(bytes).first(kCrcAt));
  for (const auto& piece : body) crc = ExtendCrc32c(crc, piece);
  StoreLe<uint32_t>(&bytes[kCrcAt], crc);
  return bytes;
}

bool HasMagic(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagicAt + sizeof(kMessageMagic) &&
         LoadLe<uint32_t>(&bytes[kMagicAt]) == kMessageMagic;
}

absl::StatusOr<MessageHeader> DecodeHeader(std::span<const std::byte> bytes) {
  if (absl::Status status = CheckPrefix(bytes); !status.ok()) return status;
  if (absl::Status status = CheckFields(bytes); !status.ok()) return status;
  MessageHeader header;
  header.type = static_cast<MessageType>(LoadLe<uint16_t>(&bytes[kTypeAt]));
  header.request_id = LoadLe<uint64_t>(&bytes[kRequestIdAt]);
  std::memcpy(header.session.bytes.data(), &bytes[kSessionAt],
              header.session.bytes.size());
  header.layer = LoadLe<uint32_t>(&bytes[kLayerAt]);
  header.code =
      static_cast<absl::StatusCode>(LoadLe<uint32_t>(&bytes[kCodeAt]));
  header.step = LoadLe<uint64_t>(&bytes[kStepAt]);
  header.epoch = Epoch{LoadLe<uint64_t>(&bytes[kEpochAt])};
  header.body_bytes = LoadLe<uint64_t>(&bytes[kBodyBytesAt]);
  return header;
}

absl::Status CheckMessage(std::span<const std::byte> header,
                          std::span<const std::byte> body) {
  if (header.size() != kMessageHeaderBytes) {
    return absl::DataLossError(absl::StrCat("message header has ",
                                            header.size(), " bytes, not ",
                                            kMessageHeaderBytes));
  }
  const uint64_t body_bytes = LoadLe<uint64_t>(&header[kBodyBytesAt]);
  if (body_bytes != body.size()) {
    return absl::DataLossError(absl::StrCat("message body has ", body.size(),
                                            " bytes, its header says ",
                                            body_bytes));
  }
  const uint32_t sent = LoadLe<uint32_t>(&header[kCrcAt]);
  const uint32_t computed = ExtendCrc32c(Crc32c(header.first(kCrcAt)), body);
  if (sent != computed) {
    return absl::DataLossError(absl::StrCat(
        "message CRC32C is 0x", absl::Hex(computed), ", its header says 0x",
        absl::Hex(sent), " (request ", LoadLe<uint64_t>(&header[kRequestIdAt]),
        ", ", body_bytes, " body bytes)"));
  }
  return absl::OkStatus();
}

}  // namespace farkv

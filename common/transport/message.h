// The header of every data-plane message, frozen: version 1. Eighty bytes,
// little endian; the body (common/page/bodies.h) follows. DESIGN 6 and 13.
//
//   offset size field
//        0    4 magic "FKVM"
//        4    2 version (1)
//        6    2 type (MessageType)
//        8    8 request id: chosen by the requester, echoed by the reply
//       16   16 session id (zero where a message is not about one session)
//       32    4 layer (0xffffffff: none)
//       36    4 status code (absl::StatusCode; 0 in requests)
//       40    8 step
//       48    8 epoch of the node (0 in the first hello)
//       56    8 body bytes
//       64   12 zero
//       76    4 CRC32C over bytes [0, 76) and the body
//
// Pure; thread-compatible.
#ifndef FARKV_COMMON_TRANSPORT_MESSAGE_H_
#define FARKV_COMMON_TRANSPORT_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace farkv {

inline constexpr uint32_t kMessageMagic = 0x4d564b46;  // "FKVM"
inline constexpr uint16_t kMessageVersion = 1;
inline constexpr size_t kMessageHeaderBytes = 80;

enum class MessageType : uint16_t {
  kHelloRequest = 1,  // body: one-time token from OpenSession (may be empty)
  kHelloReply = 2,
  kPingRequest = 3,  // body empty, or 4 bytes: how many the reply has
  kPingReply = 4,
  kStoreRequest = 5,
  kStoreReply = 6,
  kFetchRequest = 7,
  kFetchReply = 8,
  kAttendRequest = 9,
  kAttendReply = 10,
  kScoresRequest = 11,
  kScoresReply = 12,
};

// Replies are the odd-even successors of their requests.
constexpr bool IsReply(MessageType type) {
  return static_cast<uint16_t>(type) % 2 == 0;
}

struct MessageHeader {
  MessageType type = MessageType::kPingRequest;
  uint64_t request_id = 0;
  SessionId session;
  uint32_t layer = 0xffffffffu;
  absl::StatusCode code = absl::StatusCode::kOk;
  uint64_t step = 0;
  Epoch epoch;
  uint64_t body_bytes = 0;

  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};

using EncodedHeader = std::array<std::byte, kMessageHeaderBytes>;

// The body may be given in pieces, in order. body_bytes is taken from them.
EncodedHeader EncodeHeader(const MessageHeader& header,
                           std::span<const std::span<const std::byte>> body);

// Whether `bytes` begin as a message does. Who sends anything else speaks
// another protocol; every other fault of a header is that one message's.
bool HasMagic(std::span<const std::byte> bytes);

// Decodes and checks magic, version, length; not the CRC. INVALID_ARGUMENT
// naming the field and both values; an unknown version is
// FAILED_PRECONDITION. A type that is not named above is decoded as it came:
// a request of a later program is to be answered UNIMPLEMENTED.
absl::StatusOr<MessageHeader> DecodeHeader(std::span<const std::byte> bytes);

// DATA_LOSS when the CRC of header and body is wrong. Reads the whole body, so
// it runs on the receiver's executor, never on a progress thread.
absl::Status CheckMessage(std::span<const std::byte> header,
                          std::span<const std::byte> body);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_MESSAGE_H_

#include <array>
#include <vector>

#include "common/transport/message.h"
#include "tests/fuzz/fuzz_target.h"

// What decodes comes back from being encoded, and a message that passes its
// check is the one that EncodeHeader writes for it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  if (size < farkv::kMessageHeaderBytes) return 0;
  const auto bytes = input.first(farkv::kMessageHeaderBytes);
  const auto body = input.subspan(farkv::kMessageHeaderBytes);
  const auto header = farkv::DecodeHeader(bytes);
  if (!header.ok()) return 0;
  const std::array<std::span<const std::byte>, 1> pieces = {body};
  const farkv::EncodedHeader encoded = farkv::EncodeHeader(*header, pieces);
  const auto again = farkv::DecodeHeader(encoded);
  farkv::testing::Expect(again.ok() && again->body_bytes == body.size());
  farkv::testing::Expect(farkv::CheckMessage(encoded, body).ok());
  farkv::MessageHeader expected = *header;
  expected.body_bytes = body.size();
  farkv::testing::Expect(*again == expected);
  const bool whole = header->body_bytes == body.size();
  if (whole && farkv::CheckMessage(bytes, body).ok()) {
    farkv::testing::ExpectSameBytes(bytes, encoded);
  }
  return 0;
}

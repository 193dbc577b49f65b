#include "common/mapping/map_protocol.h"
#include "tests/fuzz/fuzz_target.h"

// What decodes must survive being encoded: the same values come back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  const auto request = farkv::DecodeMapRequest(input);
  if (request.ok()) {
    const auto encoded = farkv::EncodeMapRequest(*request);
    farkv::testing::Expect(encoded.ok());
    const auto again = farkv::DecodeMapRequest(*encoded);
    farkv::testing::Expect(again.ok() && again->token == request->token &&
                           again->session == request->session &&
                           again->slab_id == request->slab_id);
  }
  const auto reply = farkv::DecodeMapReply(input);
  if (reply.ok()) {
    const auto again = farkv::DecodeMapReply(farkv::EncodeMapReply(*reply));
    farkv::testing::Expect(again.ok() && again->status == reply->status &&
                           again->slab_id == reply->slab_id &&
                           again->size_bytes == reply->size_bytes);
  }
  return 0;
}

#include "common/page/bodies.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  const auto replies = farkv::DecodeAttendReply(input);
  if (!replies.ok()) return 0;
  // The shape is known from the first subtree; without one there is nothing
  // to compare.
  for (const farkv::AttendSequenceReply& reply : *replies) {
    if (reply.subtrees.empty()) continue;
    const farkv::AttendSubtree& first = reply.subtrees.front();
    const auto encoded = farkv::EncodeAttendReply(
        *replies, static_cast<int>(first.m.size()),
        static_cast<int>(first.out.size() / first.m.size()));
    farkv::testing::Expect(encoded.ok());
    farkv::testing::ExpectSameBytes(input, *encoded);
    return 0;
  }
  return 0;
}

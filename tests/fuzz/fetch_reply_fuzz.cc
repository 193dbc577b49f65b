#include "common/page/bodies.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  // The receiver's row size, as in the seeds.
  const auto decoded = farkv::DecodeFetchReply(input, 64);
  if (!decoded.ok() || decoded->message.empty()) return 0;
  const auto encoded = farkv::EncodeFetchReply(
      decoded->message, static_cast<int>(decoded->message.front().rows.size()));
  farkv::testing::Expect(encoded.ok());
  farkv::testing::ExpectSameBytes(input, *encoded, decoded->rows);
  return 0;
}

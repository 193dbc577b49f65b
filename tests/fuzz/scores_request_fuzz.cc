#include "common/page/bodies.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  const auto request = farkv::DecodeScoresRequest(input);
  if (!request.ok()) return 0;
  const auto encoded = farkv::EncodeScoresRequest(*request);
  farkv::testing::Expect(encoded.ok());
  farkv::testing::ExpectSameBytes(input, *encoded);
  return 0;
}

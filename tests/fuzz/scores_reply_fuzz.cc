#include "common/page/bodies.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  const auto pages = farkv::DecodeScoresReply(input);
  if (!pages.ok()) return 0;
  farkv::testing::ExpectSameBytes(input, farkv::EncodeScoresReply(*pages));
  return 0;
}

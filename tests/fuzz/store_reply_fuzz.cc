#include "common/page/bodies.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  const auto codes = farkv::DecodeStoreReply(input);
  if (!codes.ok()) return 0;
  farkv::testing::ExpectSameBytes(input, farkv::EncodeStoreReply(*codes));
  return 0;
}

#include "common/page/bodies.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = farkv::testing::InputBytes(data, size);
  const auto items = farkv::DecodeFetchRequest(input);
  if (!items.ok() || items->empty()) return 0;
  const auto encoded = farkv::EncodeFetchRequest(
      *items, static_cast<int>(items->front().rows.size()));
  farkv::testing::Expect(encoded.ok());
  farkv::testing::ExpectSameBytes(input, *encoded);
  return 0;
}

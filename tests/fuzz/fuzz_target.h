// What fuzz targets share. A target crashes (trap) when a property fails, so
// that libFuzzer keeps the input and a replay fails. Test only.
#ifndef FARKV_TESTS_FUZZ_FUZZ_TARGET_H_
#define FARKV_TESTS_FUZZ_FUZZ_TARGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace farkv::testing {

inline void Expect(bool property) {
  if (!property) __builtin_trap();
}

inline std::span<const std::byte> InputBytes(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

// `encoded` and then `rows` must be the input again: a format has one form.
inline void ExpectSameBytes(std::span<const std::byte> input,
                            std::span<const std::byte> encoded,
                            std::span<const std::byte> rows = {}) {
  Expect(encoded.size() + rows.size() == input.size());
  Expect(std::equal(encoded.begin(), encoded.end(), input.begin()));
  Expect(rows.empty() || rows.data() == input.data() + encoded.size());
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_FUZZ_FUZZ_TARGET_H_

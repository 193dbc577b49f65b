// Little-endian loads and stores at unaligned addresses, for every byte format
// of the project. Pure.
#ifndef FARKV_COMMON_BASE_ENDIAN_H_
#define FARKV_COMMON_BASE_ENDIAN_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace farkv {

static_assert(std::endian::native == std::endian::little,
              "formats are little endian and read in place");

template <std::integral T>
T LoadLe(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <std::integral T>
void StoreLe(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_ENDIAN_H_

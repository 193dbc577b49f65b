// CRC32C (Castagnoli, RFC 3720), the checksum of rows, page headers and
// data-plane messages. ISA-L computes it. Thread-safe, pure.
#ifndef FARKV_COMMON_BASE_CRC32C_H_
#define FARKV_COMMON_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace farkv {

// CRC32C of `data`. Crc32c("123456789") == 0xe3069283.
uint32_t Crc32c(std::span<const std::byte> data);

// CRC32C of the concatenation of the bytes behind `crc` and `data`.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> data);

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_CRC32C_H_

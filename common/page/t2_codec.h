// One head of a page between full precision (T1) and its T2 form: 8 or 4 bits,
// keys per channel, values per row in groups of 32 channels, and a few rows
// kept as they are. The bytes are page_format.h's; the scheme is ALGORITHMS
// 11.3, after KIVI (arXiv 2402.02750), with VaSE's value range as the risk.
//
// Goal: quantise once; the codes are the master copy, and decoding gives the
// same bits everywhere (one order of fp32 operations, one rounding to the KV
// dtype). Pure functions on caller-owned bytes.
#ifndef FARKV_COMMON_PAGE_T2_CODEC_H_
#define FARKV_COMMON_PAGE_T2_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"
#include "common/page/page_format.h"

namespace farkv {

// One head of a T1 page: 64 keys, then 64 values, each geometry.VectorBytes().
struct T1Head {
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
};

// Slots to keep at full precision: `sinks`, then the live rows with the largest
// value ranges (max - min over the channels), the lower slot first where they
// are equal, until 3 % of the 64 rows, rounded up, are added or the page's
// exception slots are used up. Dead slots are not read.
uint64_t ChooseT2Exceptions(const KvGeometry& geometry, const T1Head& head,
                            uint64_t live, uint64_t sinks);

// Writes the head's part, T2HeadLayout::head_bytes long, every byte of it. Dead
// slots get code 0 and are not read. `exceptions`: live slots, at most
// kT2ExceptionSlots. Codes are rounded half to even against the fp16 scale and
// minimum that are stored. OUT_OF_RANGE naming slot and channel for a value
// that is not finite or beyond fp16 and not in an exception.
absl::Status EncodeT2Head(const KvGeometry& geometry, int bits,
                          const T1Head& head, uint64_t live,
                          uint64_t exceptions, std::span<std::byte> part);

// Whether DecodeT2Head() would find the exceptions in order; errors as there.
absl::Status CheckT2Exceptions(const KvGeometry& geometry, int bits,
                               std::span<const std::byte> part);

// Rows named by `slots` (all live in the encoding) as packed rows in slot
// order: keys, then values, in the KV dtype. Both have room for them.
// DATA_LOSS when the exceptions name a slot twice or outside of the page.
absl::Status DecodeT2Head(const KvGeometry& geometry, int bits,
                          std::span<const std::byte> part, uint64_t slots,
                          std::byte* keys, std::byte* values);

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_T2_CODEC_H_

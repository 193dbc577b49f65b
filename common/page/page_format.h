// The bytes of a page, frozen: format version 1. DESIGN 2, 6 and 13.
//
// A page holds 64 consecutive positions (64 * page_index ...) of one layer for
// all KV heads. It lives at a 4 KiB aligned place of a memory node's slab,
// `PageLayout::stride` bytes long: header, padding to 64 bytes, payload.
//
// Header, little endian:
//   offset size field
//        0    4 magic "FKVP"
//        4    2 format version (1)
//        6    1 tier (Tier: 1 or 2)
//        7    1 dtype (DType)
//        8   16 session id
//       24    4 layer
//       28    4 page index
//       32    8 generation      (not covered by the header CRC)
//       40    2 KV heads
//       42    2 head_dim
//       44    4 header bytes (offset of the payload)
//       48    4 payload bytes
//       52    1 T2 bits (8 or 4; 0 for T1)
//       53    3 zero
//       56    4 CRC32C of the header
//       60    4 zero
//       64  8*H live bitmap per KV head (not covered by the header CRC)
//   64+8*H 256*H CRC32C of each row, [head][slot]
// then zeros up to a multiple of 64. The header CRC covers bytes [0, 32),
// [40, 56) and the row CRCs. A row's CRC covers its key, then its value.
//
// T1 payload: the block of kv_geometry.h with 64 rows.
// T2 payload, per KV head, each part starting at a multiple of 64 bytes:
//   key scale fp16[d], key minimum fp16[d]               (per channel)
//   value scale fp16[64][d/32 rounded up], value minimum likewise
//   key codes, 64*d codes of `bits` bits, [slot][channel], low nibble first
//   value codes likewise
//   8 exception slots: u8 slot[8] (0xff: unused), padded to 64, then
//   [8] x (key, value) at full precision
// value = code * scale + minimum; exceptions take precedence (ALGORITHMS 11).
// A T2 page keeps the CRCs of its head parts: row CRC [head][0] covers the
// head's whole part, the others are zero.
//
// Pure functions on caller-owned bytes; thread-compatible.
#ifndef FARKV_COMMON_PAGE_PAGE_FORMAT_H_
#define FARKV_COMMON_PAGE_PAGE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

inline constexpr uint16_t kPageFormatVersion = 1;
inline constexpr uint32_t kPageMagic = 0x50564b46;  // "FKVP"
inline constexpr int kT2ExceptionSlots = 8;
inline constexpr uint8_t kT2NoSlot = 0xff;  // an exception that is not used
inline constexpr int kT2GroupChannels = 32;
inline constexpr size_t kPageAlignment = 4096;

// Sizes of one kind of page of a geometry, in bytes.
struct PageLayout {
  size_t header_bytes = 0;   // multiple of 64; the payload starts here
  size_t payload_bytes = 0;  // rows only
  size_t stride = 0;         // header + payload rounded up to 4 KiB

  static PageLayout T1(const KvGeometry& geometry);
  static PageLayout T2(const KvGeometry& geometry, int bits);
};

// Offsets inside one head's part of a T2 payload, in bytes.
struct T2HeadLayout {
  size_t key_scale, key_minimum, value_scale, value_minimum;
  size_t key_codes, value_codes, exception_slots, exception_rows;
  size_t head_bytes;  // multiple of 64: distance to the next head

  static T2HeadLayout Of(const KvGeometry& geometry, int bits);
};

// What identifies a page and how to read it.
struct PageIdentity {
  SessionId session;
  int32_t layer = 0;
  int32_t page_index = 0;
  Generation generation;
  Tier tier = Tier::kT1;
  int t2_bits = 0;

  friend bool operator==(const PageIdentity&, const PageIdentity&) = default;
};

// Reads or writes the fields of a page in place. Non-owning; `page` must have
// at least header_bytes, be aligned to 8 and outlive the view. Generation and
// bitmaps are atomic, so that a reader of a shared mapping may load them while
// the owner stores; the other fields change only under a new generation.
class PageHeader {
 public:
  PageHeader(std::byte* page, const KvGeometry& geometry)
      : page_(page), num_kv_heads_(geometry.num_kv_heads) {}

  // Writes every field but the generation, the bitmaps (zeroed) and the CRCs
  // (zeroed). The caller stores the generation first, then fences (DESIGN 6).
  void Format(const PageIdentity& identity, const KvGeometry& geometry);
  // Recomputes the header CRC; call after the row CRCs are final.
  void Seal();

  Generation generation() const;               // acquire
  void set_generation(Generation generation);  // release
  uint64_t live(int head) const;
  void set_live(int head, uint64_t bitmap);
  uint32_t row_crc(int head, int slot) const;
  void set_row_crc(int head, int slot, uint32_t crc);

 private:
  std::byte* page_;
  int num_kv_heads_;
};

// The generation of a page that is mapped read-only: what a mapped reader loads
// (acquire) before and, behind an acquire fence, after its reads (DESIGN 6).
Generation LoadPageGeneration(const std::byte* page);

// OK when the header at `page` (at least header_bytes long) is intact and says
// exactly `expected` of `geometry`. DATA_LOSS for a wrong CRC or magic,
// FAILED_PRECONDITION naming the first field that differs and both values.
absl::Status CheckPageHeader(const std::byte* page, const KvGeometry& geometry,
                             const PageIdentity& expected);

// CRC32C of one row: its key bytes, then its value bytes.
uint32_t RowCrc(std::span<const std::byte> key,
                std::span<const std::byte> value);

// Checks the rows named by `rows` ([num_kv_heads] bitmaps) of a T1 page against
// its header. DATA_LOSS naming session, layer, page, head and slot.
absl::Status CheckPageRows(const std::byte* page, const KvGeometry& geometry,
                           std::span<const uint64_t> rows);

// The same for the heads of a T2 page: their CRCs cover whole head parts.
absl::Status CheckT2Heads(const std::byte* page, const KvGeometry& geometry,
                          int bits);

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_PAGE_FORMAT_H_

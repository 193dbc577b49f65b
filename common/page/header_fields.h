// Offsets of the header fields that page_format.h describes. Private to this
// room.
#ifndef FARKV_COMMON_PAGE_HEADER_FIELDS_H_
#define FARKV_COMMON_PAGE_HEADER_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/ids.h"
#include "common/base/session_handle.h"
#include "common/layout/kv_geometry.h"

namespace farkv::header {

inline constexpr size_t kVersion = 4;
inline constexpr size_t kTier = 6;
inline constexpr size_t kDType = 7;
inline constexpr size_t kSession = 8;
inline constexpr size_t kLayer = 24;
inline constexpr size_t kPageIndex = 28;
inline constexpr size_t kGeneration = 32;
inline constexpr size_t kKvHeads = 40;
inline constexpr size_t kHeadDim = 42;
inline constexpr size_t kHeaderBytes = 44;
inline constexpr size_t kPayloadBytes = 48;
inline constexpr size_t kT2Bits = 52;
inline constexpr size_t kCrc = 56;
inline constexpr size_t kBitmaps = 64;

inline constexpr size_t BitmapOffset(size_t head) {
  return kBitmaps + head * sizeof(uint64_t);
}

inline constexpr size_t RowCrcOffset(size_t num_kv_heads, size_t head,
                                     size_t slot) {
  return BitmapOffset(num_kv_heads) +
         (head * kPageTokens + slot) * sizeof(uint32_t);
}

// "session S, layer L, page P" as the header says, for errors.
inline std::string Describe(const std::byte* page) {
  SessionId session;
  std::memcpy(session.bytes.data(), page + kSession, session.bytes.size());
  return absl::StrCat("session ", SessionHandle(session), ", layer ",
                      LoadLe<int32_t>(page + kLayer), ", page ",
                      LoadLe<int32_t>(page + kPageIndex));
}

}  // namespace farkv::header

#endif  // FARKV_COMMON_PAGE_HEADER_FIELDS_H_

// Sizes of T1 and T2 pages and the parts of a T2 head; page_format.h.
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/page/header_fields.h"
#include "common/page/page_format.h"

namespace farkv {
namespace {

constexpr size_t kPartAlignment = 64;
constexpr size_t kHalfBytes = 2;  // fp16 scale or minimum

constexpr size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

PageLayout WithPayload(const KvGeometry& geometry, size_t payload_bytes) {
  const auto heads = static_cast<size_t>(geometry.num_kv_heads);
  PageLayout layout;
  layout.header_bytes =
      RoundUp(header::RowCrcOffset(heads, heads, 0), kPartAlignment);
  layout.payload_bytes = payload_bytes;
  layout.stride = RoundUp(layout.header_bytes + payload_bytes, kPageAlignment);
  return layout;
}

}  // namespace

PageLayout PageLayout::T1(const KvGeometry& geometry) {
  return WithPayload(geometry, geometry.BlockBytes(kPageTokens));
}

PageLayout PageLayout::T2(const KvGeometry& geometry, int bits) {
  return WithPayload(geometry, static_cast<size_t>(geometry.num_kv_heads) *
                                   T2HeadLayout::Of(geometry, bits).head_bytes);
}

T2HeadLayout T2HeadLayout::Of(const KvGeometry& geometry, int bits) {
  const auto dim = static_cast<size_t>(geometry.head_dim);
  const size_t groups = (dim + kT2GroupChannels - 1) / kT2GroupChannels;
  const size_t key_halves = dim * kHalfBytes;
  const size_t value_halves = kPageTokens * groups * kHalfBytes;
  const size_t codes = kPageTokens * dim * static_cast<size_t>(bits) / 8;
  size_t end = 0;
  const auto place = [&end](size_t bytes) {
    const size_t offset = end;
    end = RoundUp(offset + bytes, kPartAlignment);
    return offset;
  };
  T2HeadLayout layout;
  layout.key_scale = place(key_halves);
  layout.key_minimum = place(key_halves);
  layout.value_scale = place(value_halves);
  layout.value_minimum = place(value_halves);
  layout.key_codes = place(codes);
  layout.value_codes = place(codes);
  layout.exception_slots = place(kT2ExceptionSlots);
  layout.exception_rows = place(kT2ExceptionSlots * geometry.RowBytes());
  layout.head_bytes = end;
  return layout;
}

absl::Status CheckT2Heads(const std::byte* page, const KvGeometry& geometry,
                          int bits) {
  const auto heads = static_cast<size_t>(geometry.num_kv_heads);
  const size_t head_bytes = T2HeadLayout::Of(geometry, bits).head_bytes;
  const std::byte* payload = page + PageLayout::T2(geometry, bits).header_bytes;
  for (size_t head = 0; head < heads; ++head) {
    const auto stored =
        LoadLe<uint32_t>(page + header::RowCrcOffset(heads, head, 0));
    const uint32_t computed = Crc32c({payload + head * head_bytes, head_bytes});
    if (stored != computed) {
      return absl::DataLossError(absl::StrCat(
          header::Describe(page), ", head ", head, ": CRC of the T2 part is 0x",
          absl::Hex(stored), ", computed 0x", absl::Hex(computed)));
    }
  }
  return absl::OkStatus();
}

}  // namespace farkv

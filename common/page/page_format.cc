#include "common/page/page_format.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/endian.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/page/header_fields.h"

namespace farkv {
namespace {

using header::kBitmaps;
using header::kCrc;
using header::kGeneration;
using header::RowCrcOffset;

size_t PayloadBytes(const KvGeometry& geometry, Tier tier, int bits) {
  return tier == Tier::kT2 ? PageLayout::T2(geometry, bits).payload_bytes
                           : PageLayout::T1(geometry).payload_bytes;
}

// Covers [0, 32), [40, 56) and the row CRCs of `num_kv_heads` heads.
uint32_t HeaderCrc(const std::byte* page, size_t num_kv_heads) {
  uint32_t crc = Crc32c({page, kGeneration});
  crc = ExtendCrc32c(crc, {page + header::kKvHeads, kCrc - header::kKvHeads});
  return ExtendCrc32c(crc, {page + RowCrcOffset(num_kv_heads, 0, 0),
                            num_kv_heads * kPageTokens * sizeof(uint32_t)});
}

// A mapped reader shares these words with the page's owner. The loads do not
// write, so a read-only mapping is fine.
std::atomic_ref<uint64_t> Word(const std::byte* page, size_t offset) {
  auto* word = const_cast<std::byte*>(page) + offset;
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word));
}

template <typename T>
absl::Status CheckField(const char* field, T found, T expected) {
  if (found == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "page header: ", field, " is ", found, ", expected ", expected));
}

// Whole ids stay out of errors.
absl::Status CheckSession(const SessionId& found, const SessionId& expected) {
  if (found == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("page header: session is ", SessionHandle(found),
                   "..., expected ", SessionHandle(expected), "..."));
}

absl::Status CheckIntact(const std::byte* page, const KvGeometry& geometry) {
  const uint32_t magic = LoadLe<uint32_t>(page);
  if (magic != kPageMagic) {
    return absl::DataLossError(absl::StrCat("page header: magic is 0x",
                                            absl::Hex(magic), ", expected 0x",
                                            absl::Hex(kPageMagic)));
  }
  // The stored head count says how far the CRC reaches, but no further than
  // the bytes that the caller vouches for.
  const auto expected_heads = static_cast<size_t>(geometry.num_kv_heads);
  size_t heads = LoadLe<uint16_t>(page + header::kKvHeads);
  if (heads == 0 || heads > expected_heads) heads = expected_heads;
  const uint32_t stored = LoadLe<uint32_t>(page + kCrc);
  const uint32_t computed = HeaderCrc(page, heads);
  if (stored == computed) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("page header: CRC is 0x",
                                          absl::Hex(stored), ", computed 0x",
                                          absl::Hex(computed)));
}

absl::Status CheckIdentity(const std::byte* page,
                           const PageIdentity& expected) {
  SessionId session;
  std::memcpy(session.bytes.data(), page + header::kSession,
              session.bytes.size());
  FARKV_RETURN_IF_ERROR(CheckSession(session, expected.session));
  FARKV_RETURN_IF_ERROR(CheckField(
      "layer", LoadLe<int32_t>(page + header::kLayer), expected.layer));
  FARKV_RETURN_IF_ERROR(CheckField("page index",
                                   LoadLe<int32_t>(page + header::kPageIndex),
                                   expected.page_index));
  return CheckField("generation", LoadPageGeneration(page).value,
                    expected.generation.value);
}

absl::Status CheckShape(const std::byte* page, const KvGeometry& geometry,
                        const PageIdentity& expected) {
  FARKV_RETURN_IF_ERROR(CheckField("tier",
                                   static_cast<int>(page[header::kTier]),
                                   static_cast<int>(expected.tier)));
  FARKV_RETURN_IF_ERROR(CheckField("dtype",
                                   static_cast<int>(page[header::kDType]),
                                   static_cast<int>(geometry.dtype)));
  FARKV_RETURN_IF_ERROR(
      CheckField<int>("KV heads", LoadLe<uint16_t>(page + header::kKvHeads),
                      geometry.num_kv_heads));
  FARKV_RETURN_IF_ERROR(
      CheckField<int>("head_dim", LoadLe<uint16_t>(page + header::kHeadDim),
                      geometry.head_dim));
  FARKV_RETURN_IF_ERROR(CheckField(
      "T2 bits", static_cast<int>(page[header::kT2Bits]), expected.t2_bits));
  FARKV_RETURN_IF_ERROR(CheckField<size_t>(
      "header bytes", LoadLe<uint32_t>(page + header::kHeaderBytes),
      PageLayout::T1(geometry).header_bytes));
  return CheckField<size_t>(
      "payload bytes", LoadLe<uint32_t>(page + header::kPayloadBytes),
      PayloadBytes(geometry, expected.tier, expected.t2_bits));
}

absl::Status RowLoss(const std::byte* page, size_t head, int slot,
                     uint32_t stored, uint32_t computed) {
  return absl::DataLossError(
      absl::StrCat(header::Describe(page), ", head ", head, ", slot ", slot,
                   ": row CRC is 0x", absl::Hex(stored), ", computed 0x",
                   absl::Hex(computed)));
}

}  // namespace

void PageHeader::Format(const PageIdentity& identity,
                        const KvGeometry& geometry) {
  const size_t header_bytes = PageLayout::T1(geometry).header_bytes;
  std::memset(page_, 0, kGeneration);
  std::memset(page_ + header::kKvHeads, 0, kBitmaps - header::kKvHeads);
  for (int head = 0; head < num_kv_heads_; ++head) set_live(head, 0);
  const size_t row_crcs =
      RowCrcOffset(static_cast<size_t>(num_kv_heads_), 0, 0);
  std::memset(page_ + row_crcs, 0, header_bytes - row_crcs);
  StoreLe(page_, kPageMagic);
  StoreLe(page_ + header::kVersion, kPageFormatVersion);
  page_[header::kTier] = static_cast<std::byte>(identity.tier);
  page_[header::kDType] = static_cast<std::byte>(geometry.dtype);
  std::memcpy(page_ + header::kSession, identity.session.bytes.data(),
              identity.session.bytes.size());
  StoreLe(page_ + header::kLayer, identity.layer);
  StoreLe(page_ + header::kPageIndex, identity.page_index);
  StoreLe(page_ + header::kKvHeads,
          static_cast<uint16_t>(geometry.num_kv_heads));
  StoreLe(page_ + header::kHeadDim, static_cast<uint16_t>(geometry.head_dim));
  StoreLe(page_ + header::kHeaderBytes, static_cast<uint32_t>(header_bytes));
  StoreLe(page_ + header::kPayloadBytes,
          static_cast<uint32_t>(
              PayloadBytes(geometry, identity.tier, identity.t2_bits)));
  page_[header::kT2Bits] = static_cast<std::byte>(identity.t2_bits);
}

void PageHeader::Seal() {
  StoreLe(page_ + kCrc, HeaderCrc(page_, static_cast<size_t>(num_kv_heads_)));
}

Generation PageHeader::generation() const { return LoadPageGeneration(page_); }

void PageHeader::set_generation(Generation generation) {
  Word(page_, kGeneration).store(generation.value, std::memory_order_release);
}

uint64_t PageHeader::live(int head) const {
  return Word(page_, header::BitmapOffset(static_cast<size_t>(head)))
      .load(std::memory_order_relaxed);
}

void PageHeader::set_live(int head, uint64_t bitmap) {
  Word(page_, header::BitmapOffset(static_cast<size_t>(head)))
      .store(bitmap, std::memory_order_relaxed);
}

uint32_t PageHeader::row_crc(int head, int slot) const {
  return LoadLe<uint32_t>(page_ +
                          RowCrcOffset(static_cast<size_t>(num_kv_heads_),
                                       static_cast<size_t>(head),
                                       static_cast<size_t>(slot)));
}

void PageHeader::set_row_crc(int head, int slot, uint32_t crc) {
  StoreLe(page_ + RowCrcOffset(static_cast<size_t>(num_kv_heads_),
                               static_cast<size_t>(head),
                               static_cast<size_t>(slot)),
          crc);
}

Generation LoadPageGeneration(const std::byte* page) {
  return Generation{Word(page, kGeneration).load(std::memory_order_acquire)};
}

absl::Status CheckPageHeader(const std::byte* page, const KvGeometry& geometry,
                             const PageIdentity& expected) {
  FARKV_RETURN_IF_ERROR(CheckIntact(page, geometry));
  FARKV_RETURN_IF_ERROR(CheckField("format version",
                                   LoadLe<uint16_t>(page + header::kVersion),
                                   kPageFormatVersion));
  FARKV_RETURN_IF_ERROR(CheckIdentity(page, expected));
  return CheckShape(page, geometry, expected);
}

uint32_t RowCrc(std::span<const std::byte> key,
                std::span<const std::byte> value) {
  return ExtendCrc32c(Crc32c(key), value);
}

absl::Status CheckPageRows(const std::byte* page, const KvGeometry& geometry,
                           std::span<const uint64_t> rows) {
  const auto heads = static_cast<size_t>(geometry.num_kv_heads);
  if (rows.size() != heads) {
    return absl::InvalidArgumentError(
        absl::StrCat(header::Describe(page), ": ", rows.size(),
                     " bitmaps given for ", heads, " KV heads"));
  }
  const std::byte* payload = page + PageLayout::T1(geometry).header_bytes;
  const size_t vector_bytes = geometry.VectorBytes();
  for (size_t head = 0; head < heads; ++head) {
    for (uint64_t left = rows[head]; left != 0; left &= left - 1) {
      const auto slot = static_cast<size_t>(std::countr_zero(left));
      const auto stored =
          LoadLe<uint32_t>(page + RowCrcOffset(heads, head, slot));
      const uint32_t computed = RowCrc(
          {payload + geometry.KeyOffset(kPageTokens, head, slot), vector_bytes},
          {payload + geometry.ValueOffset(kPageTokens, head, slot),
           vector_bytes});
      if (stored != computed) {
        return RowLoss(page, head, static_cast<int>(slot), stored, computed);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace farkv

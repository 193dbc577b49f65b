// Bodies of the data-plane messages, frozen: message version 1. The message
// header is common/transport/message.h; DESIGN 6, 8 and 13. Integers are
// little endian; H is the number of KV heads, Hq of query heads, d head_dim.
// Offsets count from the start of the body; every "rows" part starts at the
// next multiple of 64 and is a block of kv_geometry.h per page (head-major:
// each head's keys, then its values), with as many rows per head as the
// bitmap of that head has bits.
//
// An item or page names the tier of its rows: u16 tier, u16 T2 bits, with tier
// 1 (T1, bits 0) or 2 (T2, bits 8 or 4). The rows part of a T2 item is, for
// each head whose bitmap is not zero, that head's whole part of the T2 payload
// (T2HeadLayout::head_bytes, a multiple of 64); its one row CRC is the part's.
// Workers store pages as T1; T2 items move what a node has compressed.
//
// StoreRequest (one page each item; header.layer is unused, kNoLayer)
//   u32 items, u32 H, u32 d, u32 dtype
//   per item: u32 layer, u32 page index, u16 tier, u16 T2 bits, u32 zero,
//     u64 generation, u64 live[H]
//   per item: u32 row CRC, T1 [head][live slot ascending], T2 [head]
//   rows
// StoreReply
//   u32 items, u32 zero; per item: u32 status code (absl), u32 zero
// FetchRequest (header.layer names the layer)
//   u32 items, u32 H
//   per item: u32 page index, u16 tier, u16 T2 bits, u64 generation,
//     u64 rows[H]
// FetchReply
//   u32 items, u32 H, u32 d, u32 dtype
//   per item: u32 page index, u32 status code, u64 generation, u16 tier,
//     u16 T2 bits, u32 zero, u64 rows[H] (zero when the status is not OK)
//   per item: u32 row CRC, T1 [head][slot ascending], T2 [head]
//   rows
// AttendRequest (pushdown; header.layer and header.step name layer and step)
//   u32 sequences, u32 Hq, u32 d, u32 dtype, f32 scale, u32 H
//   per sequence: session id[16], u64 position, u32 page runs, u32 flags
//     (bit 0: previous globals present; bit 1: keep weights for scores)
//   per sequence: if bit 0: u64 step, f32 m[Hq], f32 l[Hq] of that step
//   per sequence, per page run (pages that follow each other, of one tier):
//     u32 first page, u32 pages, u16 tier, u16 T2 bits, u32 flags (bit 0: every
//     slot is live for every head), u64 generation[pages]
//     if not bit 0: u64 live[pages][H]
//   per sequence: queries, dtype[Hq][d], each starting at a multiple of 64
//   Page runs ascend and are as long as can be. A page without a live row is
//   not looked up; it counts as present, its leaf is empty.
// AttendReply
//   u32 sequences, u32 Hq, u32 d, u32 zero
//   per sequence: u32 status code, u32 subtrees, u32 first page that failed
//     (0xffffffff: none is to blame), u32 zero
//   per sequence, per subtree: u32 level, u32 index, f32 m[Hq], f32 l[Hq],
//     f32 O[Hq][d]
// ScoresRequest (attention mass that pushed-down leaves gathered;
// header.session)
//   u32 layers, u32 Hq, u32 pages, u32 zero, u64 collection
//   per layer: u32 layer, u32 zero, u64 step, f32 m[Hq], f32 l[Hq] of that step
//   per page: u32 page index, ascending
// ScoresReply
//   u32 pages, u32 zero; per page: u32 page index, u32 zero, i64 sum[64]
//
// Decoders trust nothing: every count is bounded by the limits below and by
// the bytes present before anything is allocated. Pure; thread-compatible.
#ifndef FARKV_COMMON_PAGE_BODIES_H_
#define FARKV_COMMON_PAGE_BODIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

inline constexpr uint32_t kMaxMessageItems = 4096;
inline constexpr uint32_t kMaxMessageBytes = 64u << 20;
inline constexpr uint32_t kMaxQueryHeads = 1024;
inline constexpr uint32_t kMaxSequencePages = 65536;  // 4 Mi positions
inline constexpr uint32_t kNoLayer = 0xffffffffu;
inline constexpr uint32_t kNoPage = 0xffffffffu;

struct StoreItem {
  int32_t layer = 0;
  int32_t page_index = 0;
  Generation generation;
  std::vector<uint64_t> live;      // [H]
  std::vector<uint32_t> row_crcs;  // T1 [head][live slot ascending], T2 [head]
  Tier tier = Tier::kT1;
  int t2_bits = 0;

  // Length of the item's piece of the rows part.
  size_t RowsBytes(const KvGeometry& geometry) const;
};

struct StoreRequest {
  KvGeometry geometry;  // num_layers is not on the wire and left at 0
  std::vector<StoreItem> items;
};

struct FetchItem {
  int32_t page_index = 0;
  Generation generation;
  std::vector<uint64_t> rows;  // [H]
  Tier tier = Tier::kT1;
  int t2_bits = 0;
};

struct FetchReplyItem {
  int32_t page_index = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  Generation generation;
  std::vector<uint64_t> rows;      // [H]
  std::vector<uint32_t> row_crcs;  // T1 [head][slot ascending], T2 [head]
  Tier tier = Tier::kT1;
  int t2_bits = 0;

  // Length of the item's piece of the rows part.
  size_t RowsBytes(const KvGeometry& geometry) const;
};

struct FetchReply {
  KvGeometry geometry;  // num_layers is not on the wire and left at 0
  std::vector<FetchReplyItem> items;
};

struct AttendPage {
  int32_t page_index = 0;
  Generation generation;
  std::vector<uint64_t> live;  // [H]; empty: every slot, for every head
  Tier tier = Tier::kT1;
  int t2_bits = 0;
};

struct AttendGlobals {
  uint64_t step = 0;
  std::vector<float> m, l;  // [Hq]
};

struct AttendSequence {
  SessionId session;
  int64_t position = 0;
  bool has_previous = false;
  bool scored = false;
  AttendGlobals previous;
  std::vector<AttendPage> pages;   // ascending
  std::vector<std::byte> queries;  // dtype[Hq][d]
};

struct AttendRequest {
  KvGeometry geometry;  // num_layers left at 0
  int32_t num_query_heads = 0;
  float scale = 0.0f;
  std::vector<AttendSequence> sequences;
};

struct AttendSubtree {
  uint32_t level = 0;  // covers 2^level pages
  uint32_t index = 0;  // pages [index * 2^level, (index + 1) * 2^level)
  std::vector<float> m, l, out;  // [Hq], [Hq], [Hq][d]
};

struct AttendSequenceReply {
  absl::StatusCode code = absl::StatusCode::kOk;
  uint32_t failed_page = kNoPage;
  std::vector<AttendSubtree> subtrees;
};

// Closes the last step of each layer, then asks for the sums since the
// collection before. The same collection again gets the same answer.
struct ScoresRequest {
  struct Layer {
    int32_t layer = 0;
    AttendGlobals globals;
  };
  int32_t num_query_heads = 0;
  uint64_t collection = 0;  // rises by collection, from 1
  std::vector<Layer> layers;
  std::vector<int32_t> pages;  // ascending
};

struct PageScores {
  int32_t page_index = 0;
  std::array<int64_t, kPageTokens> sums{};  // fixed point 2^-40
};

// A decoded body whose rows stay where they are: `rows` borrows from the body.
template <typename Message>
struct WithRows {
  Message message;
  std::span<const std::byte> rows;
};

// Encoders return the bytes up to the rows part (padded so that rows follow
// directly). INVALID_ARGUMENT when a limit is exceeded.
absl::StatusOr<std::vector<std::byte>> EncodeStoreRequest(
    const StoreRequest& request);
std::vector<std::byte> EncodeStoreReply(
    std::span<const absl::StatusCode> codes);
absl::StatusOr<std::vector<std::byte>> EncodeFetchRequest(
    std::span<const FetchItem> items, int num_kv_heads);
absl::StatusOr<std::vector<std::byte>> EncodeFetchReply(
    const FetchReply& reply);
absl::StatusOr<std::vector<std::byte>> EncodeAttendRequest(
    const AttendRequest& request);
absl::StatusOr<std::vector<std::byte>> EncodeAttendReply(
    std::span<const AttendSequenceReply> replies, int num_query_heads,
    int head_dim);

absl::StatusOr<std::vector<std::byte>> EncodeScoresRequest(
    const ScoresRequest& request);
std::vector<std::byte> EncodeScoresReply(std::span<const PageScores> pages);

// Decoders: INVALID_ARGUMENT naming the part that does not fit and the sizes
// compared. The geometry of a message is its sender's: the receiver compares
// it, and the tier of each item, with what it expects.
absl::StatusOr<WithRows<StoreRequest>> DecodeStoreRequest(
    std::span<const std::byte> body);
absl::StatusOr<std::vector<absl::StatusCode>> DecodeStoreReply(
    std::span<const std::byte> body);
absl::StatusOr<std::vector<FetchItem>> DecodeFetchRequest(
    std::span<const std::byte> body);
absl::StatusOr<WithRows<FetchReply>> DecodeFetchReply(
    std::span<const std::byte> body);
absl::StatusOr<AttendRequest> DecodeAttendRequest(
    std::span<const std::byte> body);
absl::StatusOr<std::vector<AttendSequenceReply>> DecodeAttendReply(
    std::span<const std::byte> body);
absl::StatusOr<ScoresRequest> DecodeScoresRequest(
    std::span<const std::byte> body);
absl::StatusOr<std::vector<PageScores>> DecodeScoresReply(
    std::span<const std::byte> body);

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_BODIES_H_

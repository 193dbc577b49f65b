// AttendRequest; its bytes are described in bodies.h.
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/body_checks.h"
#include "common/page/byte_io.h"

namespace farkv {
namespace {

constexpr char kRequest[] = "AttendRequest";

constexpr uint32_t kHasPrevious = 1;  // flag bit 0 of a sequence
// session id, position, pages, flags.
constexpr uint64_t kSequenceBytes = 32;
// page index, tier, T2 bits, generation; the bitmaps follow.
constexpr uint64_t kPageBytes = 16;

size_t QueryBytes(const AttendRequest& request) {
  return static_cast<size_t>(request.num_query_heads) *
         request.geometry.VectorBytes();
}

absl::Status CheckSequence(const AttendSequence& sequence,
                           const AttendRequest& request) {
  const auto query_heads = static_cast<size_t>(request.num_query_heads);
  if (sequence.position < 0) {
    return absl::InvalidArgumentError(absl::StrCat(kRequest, ": position is ",
                                                   sequence.position,
                                                   ", must not be negative"));
  }
  FARKV_RETURN_IF_ERROR(CheckLimit(kRequest, "pages of a sequence",
                                   sequence.pages.size(), kMaxSequencePages));
  if (sequence.has_previous) {
    FARKV_RETURN_IF_ERROR(CheckEqual(kRequest, "previous m",
                                     sequence.previous.m.size(), query_heads));
    FARKV_RETURN_IF_ERROR(CheckEqual(kRequest, "previous l",
                                     sequence.previous.l.size(), query_heads));
  }
  for (const AttendPage& page : sequence.pages) {
    FARKV_RETURN_IF_ERROR(CheckIndex(kRequest, "page index", page.page_index));
    FARKV_RETURN_IF_ERROR(
        CheckTier(kRequest, static_cast<int>(page.tier), page.t2_bits));
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kRequest, "bitmaps", page.live.size(),
                   static_cast<uint64_t>(request.geometry.num_kv_heads)));
  }
  return CheckEqual(kRequest, "query bytes", sequence.queries.size(),
                    QueryBytes(request));
}

absl::Status CheckScale(float scale) {
  if (std::isfinite(scale)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kRequest, ": scale is ", scale, ", must be finite"));
}

absl::Status CheckRequest(const AttendRequest& request) {
  FARKV_RETURN_IF_ERROR(CheckLimit(kRequest, "sequences",
                                   request.sequences.size(), kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckGeometry(kRequest, request.geometry));
  FARKV_RETURN_IF_ERROR(
      CheckIndex(kRequest, "query heads", request.num_query_heads));
  FARKV_RETURN_IF_ERROR(CheckScale(request.scale));
  return CheckQueryHeads(kRequest,
                         static_cast<uint32_t>(request.num_query_heads),
                         static_cast<uint32_t>(request.geometry.num_kv_heads));
}

void WriteSequence(ByteWriter& writer, const AttendSequence& sequence) {
  writer.PutBytes(std::as_bytes(std::span(sequence.session.bytes)));
  writer.Put(static_cast<uint64_t>(sequence.position));
  writer.Put(static_cast<uint32_t>(sequence.pages.size()));
  writer.Put(sequence.has_previous ? kHasPrevious : 0u);
}

void WritePage(ByteWriter& writer, const AttendPage& page) {
  writer.Put(static_cast<uint32_t>(page.page_index));
  WriteTier(writer, page.tier, page.t2_bits);
  writer.Put(page.generation.value);
  for (uint64_t bitmap : page.live) writer.Put(bitmap);
}

// Head of the request; returns the number of sequences.
absl::StatusOr<uint32_t> ReadRequestHead(ByteReader& reader,
                                         AttendRequest& request) {
  FARKV_RETURN_IF_ERROR(reader.Require("head", 6, 4));
  const uint32_t sequences = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kRequest, "sequences", sequences, kMaxMessageItems));
  FARKV_ASSIGN_OR_RETURN(request.num_query_heads,
                         ReadIndex(reader, "query heads"));
  FARKV_ASSIGN_OR_RETURN(request.geometry.head_dim,
                         ReadIndex(reader, "head_dim"));
  const uint32_t dtype = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kRequest, "dtype", dtype, 255));
  request.geometry.dtype = static_cast<DType>(dtype);
  request.scale = reader.ReadFloat();
  FARKV_ASSIGN_OR_RETURN(request.geometry.num_kv_heads,
                         ReadIndex(reader, "KV heads"));
  FARKV_RETURN_IF_ERROR(CheckRequest(request));
  return sequences;
}

// Fixed part of a sequence; returns its number of pages.
absl::StatusOr<uint32_t> ReadSequence(ByteReader& reader,
                                      AttendSequence& sequence) {
  const std::span<const std::byte> id =
      reader.ReadBytes(sequence.session.bytes.size());
  std::memcpy(sequence.session.bytes.data(), id.data(), id.size());
  const uint64_t position = reader.Read<uint64_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kRequest, "position", position,
                                   std::numeric_limits<int64_t>::max()));
  sequence.position = static_cast<int64_t>(position);
  const uint32_t pages = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kRequest, "pages of a sequence", pages, kMaxSequencePages));
  const uint32_t flags = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kRequest, "flags", flags, kHasPrevious));
  sequence.has_previous = flags == kHasPrevious;
  return pages;
}

absl::Status ReadPrevious(ByteReader& reader, size_t query_heads,
                          AttendGlobals& previous) {
  FARKV_RETURN_IF_ERROR(
      reader.Require("previous globals", 1, 8 + 8 * query_heads));
  previous.step = reader.Read<uint64_t>();
  previous.m.resize(query_heads);
  previous.l.resize(query_heads);
  reader.ReadFloats(previous.m);
  reader.ReadFloats(previous.l);
  return absl::OkStatus();
}

absl::Status ReadPages(ByteReader& reader, uint32_t pages, size_t num_kv_heads,
                       AttendSequence& sequence) {
  FARKV_RETURN_IF_ERROR(
      reader.Require("pages", pages, kPageBytes + 8 * num_kv_heads));
  sequence.pages.resize(pages);
  for (AttendPage& page : sequence.pages) {
    FARKV_ASSIGN_OR_RETURN(page.page_index, ReadIndex(reader, "page index"));
    FARKV_RETURN_IF_ERROR(ReadTier(reader, page.tier, page.t2_bits));
    page.generation.value = reader.Read<uint64_t>();
    page.live = ReadBitmaps(reader, num_kv_heads);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> EncodeAttendRequest(
    const AttendRequest& request) {
  FARKV_RETURN_IF_ERROR(CheckRequest(request));
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(request.sequences.size()));
  writer.Put(static_cast<uint32_t>(request.num_query_heads));
  writer.Put(static_cast<uint32_t>(request.geometry.head_dim));
  writer.Put(static_cast<uint32_t>(request.geometry.dtype));
  writer.PutFloat(request.scale);
  writer.Put(static_cast<uint32_t>(request.geometry.num_kv_heads));
  for (const AttendSequence& sequence : request.sequences) {
    FARKV_RETURN_IF_ERROR(CheckSequence(sequence, request));
    WriteSequence(writer, sequence);
  }
  for (const AttendSequence& sequence : request.sequences) {
    if (!sequence.has_previous) continue;
    writer.Put(sequence.previous.step);
    writer.PutFloats(sequence.previous.m);
    writer.PutFloats(sequence.previous.l);
  }
  for (const AttendSequence& sequence : request.sequences) {
    for (const AttendPage& page : sequence.pages) WritePage(writer, page);
  }
  for (const AttendSequence& sequence : request.sequences) {
    writer.Align();
    writer.PutBytes(sequence.queries);
  }
  std::vector<std::byte> bytes = writer.Take();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kRequest, "body bytes", bytes.size(), kMaxMessageBytes));
  return bytes;
}

absl::StatusOr<AttendRequest> DecodeAttendRequest(
    std::span<const std::byte> body) {
  ByteReader reader(body, kRequest);
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kRequest, "body bytes", body.size(), kMaxMessageBytes));
  AttendRequest request;
  FARKV_ASSIGN_OR_RETURN(const uint32_t sequences,
                         ReadRequestHead(reader, request));
  FARKV_RETURN_IF_ERROR(reader.Require("sequences", sequences, kSequenceBytes));
  request.sequences.resize(sequences);
  std::vector<uint32_t> pages(sequences);
  for (uint32_t i = 0; i < sequences; ++i) {
    FARKV_ASSIGN_OR_RETURN(pages[i],
                           ReadSequence(reader, request.sequences[i]));
  }
  const auto query_heads = static_cast<size_t>(request.num_query_heads);
  for (AttendSequence& sequence : request.sequences) {
    if (!sequence.has_previous) continue;
    FARKV_RETURN_IF_ERROR(ReadPrevious(reader, query_heads, sequence.previous));
  }
  const auto heads = static_cast<size_t>(request.geometry.num_kv_heads);
  for (uint32_t i = 0; i < sequences; ++i) {
    FARKV_RETURN_IF_ERROR(
        ReadPages(reader, pages[i], heads, request.sequences[i]));
  }
  const size_t query_bytes = QueryBytes(request);
  for (AttendSequence& sequence : request.sequences) {
    FARKV_RETURN_IF_ERROR(reader.Align("queries"));
    FARKV_RETURN_IF_ERROR(reader.Require("queries", 1, query_bytes));
    const std::span<const std::byte> bytes = reader.ReadBytes(query_bytes);
    sequence.queries.assign(bytes.begin(), bytes.end());
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return request;
}

}  // namespace farkv

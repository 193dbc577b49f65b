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

constexpr char kAttendRequest[] = "AttendRequest";

constexpr uint32_t kHasPrevious = 1;  // flag bits of a sequence
constexpr uint32_t kScored = 2;
constexpr uint32_t kAllLive = 1;  // flag bit of a page run
// session id, position, page runs, flags.
constexpr uint64_t kSequenceBytes = 32;
// first page, pages, tier, T2 bits, flags; generations and bitmaps follow.
constexpr uint64_t kRunBytes = 16;

constexpr char kEmptyRun[] = "AttendRequest: a page run has no pages";
constexpr char kSplitRun[] =
    "AttendRequest: a page run continues the one before it";

size_t QueryBytes(const AttendRequest& request) {
  return static_cast<size_t>(request.num_query_heads) *
         request.geometry.VectorBytes();
}

absl::Status CheckSequence(const AttendSequence& sequence,
                           const AttendRequest& request) {
  const auto query_heads = static_cast<size_t>(request.num_query_heads);
  if (sequence.position < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kAttendRequest, ": position is ", sequence.position,
                     ", must not be negative"));
  }
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendRequest, "pages of a sequence",
                                   sequence.pages.size(), kMaxSequencePages));
  if (sequence.has_previous) {
    FARKV_RETURN_IF_ERROR(CheckEqual(kAttendRequest, "previous m",
                                     sequence.previous.m.size(), query_heads));
    FARKV_RETURN_IF_ERROR(CheckEqual(kAttendRequest, "previous l",
                                     sequence.previous.l.size(), query_heads));
  }
  int32_t before = -1;
  for (const AttendPage& page : sequence.pages) {
    FARKV_RETURN_IF_ERROR(
        CheckAscending(kAttendRequest, before, page.page_index));
    before = page.page_index;
    FARKV_RETURN_IF_ERROR(
        CheckTier(kAttendRequest, static_cast<int>(page.tier), page.t2_bits));
    if (page.live.empty()) continue;
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kAttendRequest, "bitmaps", page.live.size(),
                   static_cast<uint64_t>(request.geometry.num_kv_heads)));
  }
  return CheckEqual(kAttendRequest, "query bytes", sequence.queries.size(),
                    QueryBytes(request));
}

absl::Status CheckScale(float scale) {
  if (std::isfinite(scale)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kAttendRequest, ": scale is ", scale, ", must be finite"));
}

absl::Status CheckRequest(const AttendRequest& request) {
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendRequest, "sequences",
                                   request.sequences.size(), kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckGeometry(kAttendRequest, request.geometry));
  FARKV_RETURN_IF_ERROR(
      CheckIndex(kAttendRequest, "query heads", request.num_query_heads));
  FARKV_RETURN_IF_ERROR(CheckScale(request.scale));
  return CheckQueryHeads(kAttendRequest,
                         static_cast<uint32_t>(request.num_query_heads),
                         static_cast<uint32_t>(request.geometry.num_kv_heads));
}

// Whether `page` belongs to the run of the page before it.
bool Continues(const AttendPage& before, const AttendPage& page) {
  return page.page_index == int64_t{before.page_index} + 1 &&
         page.tier == before.tier && page.t2_bits == before.t2_bits &&
         page.live.empty() == before.live.empty();
}

// Page runs of a sequence, each a piece of `pages`.
std::vector<std::span<const AttendPage>> RunsOf(
    std::span<const AttendPage> pages) {
  std::vector<std::span<const AttendPage>> runs;
  for (size_t first = 0; first < pages.size();) {
    size_t end = first + 1;
    while (end < pages.size() && Continues(pages[end - 1], pages[end])) ++end;
    runs.push_back(pages.subspan(first, end - first));
    first = end;
  }
  return runs;
}

void WriteSequence(ByteWriter& writer, const AttendSequence& sequence,
                   size_t num_runs) {
  writer.PutBytes(std::as_bytes(std::span(sequence.session.bytes)));
  writer.Put(static_cast<uint64_t>(sequence.position));
  writer.Put(static_cast<uint32_t>(num_runs));
  writer.Put((sequence.has_previous ? kHasPrevious : 0u) |
             (sequence.scored ? kScored : 0u));
}

void WriteRun(ByteWriter& writer, std::span<const AttendPage> run) {
  const AttendPage& first = run.front();
  writer.Put(static_cast<uint32_t>(first.page_index));
  writer.Put(static_cast<uint32_t>(run.size()));
  WriteTier(writer, first.tier, first.t2_bits);
  writer.Put(first.live.empty() ? kAllLive : 0u);
  for (const AttendPage& page : run) writer.Put(page.generation.value);
  for (const AttendPage& page : run) {
    for (uint64_t bitmap : page.live) writer.Put(bitmap);
  }
}

// Head of the request; returns the number of sequences.
absl::StatusOr<uint32_t> ReadRequestHead(ByteReader& reader,
                                         AttendRequest& request) {
  FARKV_RETURN_IF_ERROR(reader.Require("head", 6, 4));
  const uint32_t sequences = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendRequest, "sequences", sequences, kMaxMessageItems));
  FARKV_ASSIGN_OR_RETURN(request.num_query_heads,
                         ReadIndex(reader, "query heads"));
  FARKV_ASSIGN_OR_RETURN(request.geometry.head_dim,
                         ReadIndex(reader, "head_dim"));
  const uint32_t dtype = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendRequest, "dtype", dtype, 255));
  request.geometry.dtype = static_cast<DType>(dtype);
  request.scale = reader.ReadFloat();
  FARKV_ASSIGN_OR_RETURN(request.geometry.num_kv_heads,
                         ReadIndex(reader, "KV heads"));
  FARKV_RETURN_IF_ERROR(CheckRequest(request));
  return sequences;
}

// Fixed part of a sequence; returns its number of page runs.
absl::StatusOr<uint32_t> ReadSequence(ByteReader& reader,
                                      AttendSequence& sequence) {
  const std::span<const std::byte> id =
      reader.ReadBytes(sequence.session.bytes.size());
  std::memcpy(sequence.session.bytes.data(), id.data(), id.size());
  const uint64_t position = reader.Read<uint64_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendRequest, "position", position,
                                   std::numeric_limits<int64_t>::max()));
  sequence.position = static_cast<int64_t>(position);
  const uint32_t runs = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendRequest, "page runs of a sequence",
                                   runs, kMaxSequencePages));
  const uint32_t flags = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendRequest, "flags", flags, kHasPrevious | kScored));
  sequence.has_previous = (flags & kHasPrevious) != 0;
  sequence.scored = (flags & kScored) != 0;
  return runs;
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

absl::Status ReadRun(ByteReader& reader, size_t num_kv_heads,
                     std::vector<AttendPage>& pages) {
  FARKV_RETURN_IF_ERROR(reader.Require("page run", 1, kRunBytes));
  AttendPage page;
  FARKV_ASSIGN_OR_RETURN(page.page_index, ReadIndex(reader, "page index"));
  const uint32_t count = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendRequest, "pages of a sequence",
                                   pages.size() + uint64_t{count},
                                   kMaxSequencePages));
  FARKV_RETURN_IF_ERROR(CheckLimit(
      kAttendRequest, "page behind a run",
      static_cast<uint64_t>(page.page_index) + count, uint64_t{1} << 31));
  FARKV_RETURN_IF_ERROR(ReadTier(reader, page.tier, page.t2_bits));
  const uint32_t flags = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendRequest, "run flags", flags, kAllLive));
  const size_t bitmaps = flags == kAllLive ? 0 : num_kv_heads;
  FARKV_RETURN_IF_ERROR(reader.Require("pages", count, 8 + 8 * bitmaps));
  if (count == 0) return absl::InvalidArgumentError(kEmptyRun);
  page.live.resize(bitmaps);
  if (!pages.empty() && Continues(pages.back(), page)) {
    return absl::InvalidArgumentError(kSplitRun);
  }
  const size_t first = pages.size();
  pages.reserve(first + count);
  for (uint32_t i = 0; i < count; ++i) {
    page.generation.value = reader.Read<uint64_t>();
    pages.push_back(page);
    if (i + 1 < count) ++page.page_index;
  }
  for (size_t i = first; bitmaps > 0 && i < pages.size(); ++i) {
    pages[i].live = ReadBitmaps(reader, bitmaps);
  }
  return absl::OkStatus();
}

absl::Status ReadPages(ByteReader& reader, uint32_t runs, size_t num_kv_heads,
                       AttendSequence& sequence) {
  FARKV_RETURN_IF_ERROR(reader.Require("page runs", runs, kRunBytes + 8));
  for (uint32_t i = 0; i < runs; ++i) {
    FARKV_RETURN_IF_ERROR(ReadRun(reader, num_kv_heads, sequence.pages));
  }
  int32_t before = -1;
  for (const AttendPage& page : sequence.pages) {
    FARKV_RETURN_IF_ERROR(
        CheckAscending(kAttendRequest, before, page.page_index));
    before = page.page_index;
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
    WriteSequence(writer, sequence, RunsOf(sequence.pages).size());
  }
  for (const AttendSequence& sequence : request.sequences) {
    if (!sequence.has_previous) continue;
    writer.Put(sequence.previous.step);
    writer.PutFloats(sequence.previous.m);
    writer.PutFloats(sequence.previous.l);
  }
  for (const AttendSequence& sequence : request.sequences) {
    for (const auto run : RunsOf(sequence.pages)) WriteRun(writer, run);
  }
  for (const AttendSequence& sequence : request.sequences) {
    writer.Align();
    writer.PutBytes(sequence.queries);
  }
  std::vector<std::byte> bytes = writer.Take();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendRequest, "body bytes", bytes.size(), kMaxMessageBytes));
  return bytes;
}

absl::StatusOr<AttendRequest> DecodeAttendRequest(
    std::span<const std::byte> body) {
  ByteReader reader(body, kAttendRequest);
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendRequest, "body bytes", body.size(), kMaxMessageBytes));
  AttendRequest request;
  FARKV_ASSIGN_OR_RETURN(const uint32_t sequences,
                         ReadRequestHead(reader, request));
  FARKV_RETURN_IF_ERROR(reader.Require("sequences", sequences, kSequenceBytes));
  request.sequences.resize(sequences);
  std::vector<uint32_t> runs(sequences);
  for (uint32_t i = 0; i < sequences; ++i) {
    FARKV_ASSIGN_OR_RETURN(runs[i], ReadSequence(reader, request.sequences[i]));
  }
  const auto query_heads = static_cast<size_t>(request.num_query_heads);
  for (AttendSequence& sequence : request.sequences) {
    if (!sequence.has_previous) continue;
    FARKV_RETURN_IF_ERROR(ReadPrevious(reader, query_heads, sequence.previous));
  }
  const auto heads = static_cast<size_t>(request.geometry.num_kv_heads);
  for (uint32_t i = 0; i < sequences; ++i) {
    FARKV_RETURN_IF_ERROR(
        ReadPages(reader, runs[i], heads, request.sequences[i]));
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

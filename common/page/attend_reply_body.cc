// AttendReply; its bytes are described in bodies.h.
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/body_checks.h"
#include "common/page/byte_io.h"

namespace farkv {
namespace {

constexpr char kAttendReply[] = "AttendReply";

// A subtree covers pages [index << level, (index + 1) << level) and page
// indices are below 2^31.
absl::Status CheckSubtree(uint32_t level, uint32_t index) {
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendReply, "level of a subtree", level, 31));
  return CheckLimit(kAttendReply, "page behind a subtree",
                    (uint64_t{index} + 1) << level, uint64_t{1} << 31);
}

absl::Status CheckReplyShape(uint32_t query_heads, uint32_t head_dim) {
  FARKV_RETURN_IF_ERROR(CheckQueryHeads(kAttendReply, query_heads, 1));
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendReply, "head_dim", head_dim, 512));
  KvGeometry any;
  any.num_kv_heads = 1;
  any.head_dim = static_cast<int32_t>(head_dim);
  return CheckGeometry(kAttendReply, any);
}

// A page index, in a sequence that failed, or none.
absl::Status CheckFailedPage(const AttendSequenceReply& reply) {
  if (reply.failed_page == kNoPage) return absl::OkStatus();
  if (reply.code == absl::StatusCode::kOk) {
    return absl::InvalidArgumentError(
        "AttendReply: a page failed in a sequence that did not");
  }
  return CheckLimit(kAttendReply, "failed page", reply.failed_page, 0x7fffffff);
}

absl::Status CheckSequenceReply(const AttendSequenceReply& reply,
                                size_t query_heads, size_t head_dim) {
  FARKV_RETURN_IF_ERROR(CheckFailedPage(reply));
  if (reply.code != absl::StatusCode::kOk) {
    return CheckEqual(kAttendReply, "subtrees of a failed sequence",
                      reply.subtrees.size(), 0);
  }
  FARKV_RETURN_IF_ERROR(CheckLimit(kAttendReply, "subtrees",
                                   reply.subtrees.size(), kMaxMessageItems));
  for (const AttendSubtree& subtree : reply.subtrees) {
    FARKV_RETURN_IF_ERROR(CheckSubtree(subtree.level, subtree.index));
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kAttendReply, "m", subtree.m.size(), query_heads));
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kAttendReply, "l", subtree.l.size(), query_heads));
    FARKV_RETURN_IF_ERROR(CheckEqual(kAttendReply, "out", subtree.out.size(),
                                     query_heads * head_dim));
  }
  return absl::OkStatus();
}

absl::StatusOr<AttendSubtree> ReadSubtree(ByteReader& reader,
                                          size_t query_heads, size_t head_dim) {
  AttendSubtree subtree;
  subtree.level = reader.Read<uint32_t>();
  subtree.index = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckSubtree(subtree.level, subtree.index));
  subtree.m.resize(query_heads);
  subtree.l.resize(query_heads);
  subtree.out.resize(query_heads * head_dim);
  reader.ReadFloats(subtree.m);
  reader.ReadFloats(subtree.l);
  reader.ReadFloats(subtree.out);
  return subtree;
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> EncodeAttendReply(
    std::span<const AttendSequenceReply> replies, int num_query_heads,
    int head_dim) {
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendReply, "sequences", replies.size(), kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(
      CheckIndex(kAttendReply, "query heads", num_query_heads));
  FARKV_RETURN_IF_ERROR(CheckIndex(kAttendReply, "head_dim", head_dim));
  const auto query_heads = static_cast<uint32_t>(num_query_heads);
  const auto dim = static_cast<uint32_t>(head_dim);
  FARKV_RETURN_IF_ERROR(CheckReplyShape(query_heads, dim));
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(replies.size()));
  writer.Put(query_heads);
  writer.Put(dim);
  writer.Put(uint32_t{0});
  for (const AttendSequenceReply& reply : replies) {
    FARKV_RETURN_IF_ERROR(CheckSequenceReply(reply, query_heads, dim));
    writer.Put(static_cast<uint32_t>(reply.code));
    writer.Put(static_cast<uint32_t>(reply.subtrees.size()));
    writer.Put(reply.failed_page);
    writer.Put(uint32_t{0});
  }
  for (const AttendSequenceReply& reply : replies) {
    for (const AttendSubtree& subtree : reply.subtrees) {
      writer.Put(subtree.level);
      writer.Put(subtree.index);
      writer.PutFloats(subtree.m);
      writer.PutFloats(subtree.l);
      writer.PutFloats(subtree.out);
    }
  }
  std::vector<std::byte> bytes = writer.Take();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendReply, "body bytes", bytes.size(), kMaxMessageBytes));
  return bytes;
}

absl::StatusOr<std::vector<AttendSequenceReply>> DecodeAttendReply(
    std::span<const std::byte> body) {
  ByteReader reader(body, kAttendReply);
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendReply, "body bytes", body.size(), kMaxMessageBytes));
  FARKV_RETURN_IF_ERROR(reader.Require("head", 4, 4));
  const uint32_t sequences = reader.Read<uint32_t>();
  const uint32_t query_heads = reader.Read<uint32_t>();
  const uint32_t dim = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kAttendReply, "sequences", sequences, kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckReplyShape(query_heads, dim));
  FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field"));
  FARKV_RETURN_IF_ERROR(reader.Require("sequences", sequences, 16));
  std::vector<AttendSequenceReply> replies(sequences);
  std::vector<uint32_t> subtrees(sequences);
  for (uint32_t i = 0; i < sequences; ++i) {
    FARKV_ASSIGN_OR_RETURN(replies[i].code, ReadStatusCode(reader));
    subtrees[i] = reader.Read<uint32_t>();
    FARKV_RETURN_IF_ERROR(CheckLimit(
        kAttendReply, "subtrees", subtrees[i],
        replies[i].code == absl::StatusCode::kOk ? kMaxMessageItems : 0));
    replies[i].failed_page = reader.Read<uint32_t>();
    FARKV_RETURN_IF_ERROR(CheckFailedPage(replies[i]));
    FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field of a sequence"));
  }
  const uint64_t subtree_bytes =
      8 + 4 * uint64_t{query_heads} * (2 + uint64_t{dim});
  for (uint32_t i = 0; i < sequences; ++i) {
    FARKV_RETURN_IF_ERROR(
        reader.Require("subtrees", subtrees[i], subtree_bytes));
    replies[i].subtrees.reserve(subtrees[i]);
    for (uint32_t k = 0; k < subtrees[i]; ++k) {
      FARKV_ASSIGN_OR_RETURN(AttendSubtree subtree,
                             ReadSubtree(reader, query_heads, dim));
      replies[i].subtrees.push_back(std::move(subtree));
    }
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return replies;
}

}  // namespace farkv

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/page/attend_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/page/body_decoders.h"

namespace farkv {
namespace {

using testing::GoldenBytes;
using ::testing::HasSubstr;
using testing::Pattern;

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// The golden body with a word replaced.
std::vector<std::byte> With(const char* golden, size_t offset, uint32_t word) {
  std::vector<std::byte> body = GoldenBytes(golden);
  StoreLe(body.data() + offset, word);
  return body;
}

TEST(BodyLimitsTest, FieldsOutOfRangeAreNamed) {
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 0, 4097)).status()),
      HasSubstr("items is 4097, at most 4096"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 4, 257)).status()),
      HasSubstr("num_kv_heads is 257, must lie in [1, 256]"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 8, 24)).status()),
      HasSubstr("head_dim is 24, must be a multiple of 16"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 12, 3)).status()),
      HasSubstr("dtype is 3"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 12, 0x102)).status()),
      HasSubstr("dtype is 258, at most 255"));
  EXPECT_THAT(
      MessageOf(
          DecodeStoreRequest(With("store_request", 20, 0x80000000u)).status()),
      HasSubstr("page index is 2147483648, at most 2147483647"));
  EXPECT_THAT(MessageOf(DecodeStoreReply(With("store_reply", 8, 17)).status()),
              HasSubstr("status code is 17, at most 16"));
  EXPECT_THAT(MessageOf(DecodeStoreReply(With("store_reply", 4, 1)).status()),
              HasSubstr("reserved field is 1, must be zero"));
  EXPECT_THAT(MessageOf(DecodeFetchReply(With("fetch_reply", 36, 1)).status()),
              HasSubstr("reserved field of an item is 1"));
  EXPECT_THAT(MessageOf(DecodeFetchReply(With("fetch_reply", 8, 8)).status()),
              HasSubstr("head_dim is 8"));
  EXPECT_THAT(MessageOf(DecodeFetchReply(With("fetch_reply", 12, 0)).status()),
              HasSubstr("dtype is 0"));
  EXPECT_THAT(
      MessageOf(DecodeFetchRequest(With("fetch_request", 4, 0)).status()),
      HasSubstr("num_kv_heads is 0"));
}

TEST(BodyLimitsTest, AttendFieldsOutOfRangeAreNamed) {
  const auto request = [](size_t offset, uint32_t word) {
    return MessageOf(
        DecodeAttendRequest(With("attend_request", offset, word)).status());
  };
  const auto reply = [](size_t offset, uint32_t word) {
    return MessageOf(
        DecodeAttendReply(With("attend_reply", offset, word)).status());
  };

  EXPECT_THAT(request(4, 3), HasSubstr("query heads is 3, must be a multiple "
                                       "of 2 and in [1, 1024]"));
  EXPECT_THAT(request(4, 1026), HasSubstr("query heads is 1026"));
  EXPECT_THAT(request(16, 0x7f800000), HasSubstr("scale is inf"));
  EXPECT_THAT(request(44, 0x80000000), HasSubstr("position is "));
  EXPECT_THAT(request(48, 65537),
              HasSubstr("page runs of a sequence is 65537"));
  EXPECT_THAT(request(52, 4), HasSubstr("flags is 4, at most 3"));
  EXPECT_THAT(request(132, 65537), HasSubstr("pages of a sequence is 65537"));
  EXPECT_THAT(request(132, 0), HasSubstr("a page run has no pages"));
  EXPECT_THAT(request(140, 2), HasSubstr("run flags is 2, at most 1"));
  EXPECT_THAT(reply(12, 1), HasSubstr("reserved field is 1"));
  EXPECT_THAT(reply(16, 14), HasSubstr("subtrees is 2, at most 0"));
  EXPECT_THAT(reply(24, 5), HasSubstr("a page failed in a sequence that did"));
  EXPECT_THAT(reply(28, 1), HasSubstr("reserved field of a sequence is 1"));
  EXPECT_THAT(reply(40, 0x80000000), HasSubstr("failed page is 2147483648"));
  EXPECT_THAT(reply(48, 32), HasSubstr("level of a subtree is 32, at most 31"));
  EXPECT_THAT(reply(52, 0x8000000),
              HasSubstr("page behind a subtree is 2147483664, at most "
                        "2147483648"));
}

TEST(BodyLimitsTest, PagesOfASequenceAscendInRunsThatAreNotSplit) {
  AttendRequest descending = testing::GoldenAttendRequest();
  std::swap(descending.sequences[0].pages[0], descending.sequences[0].pages[1]);
  // The second run of the first sequence becomes page 3 again, then T1.
  std::vector<std::byte> again = With("attend_request", 168, 3);
  std::vector<std::byte> split = With("attend_request", 176, 1);

  EXPECT_THAT(MessageOf(EncodeAttendRequest(descending).status()),
              HasSubstr("page index 3 follows 4"));
  EXPECT_THAT(MessageOf(DecodeAttendRequest(again).status()),
              HasSubstr("page index 3 follows 3"));
  EXPECT_THAT(MessageOf(DecodeAttendRequest(split).status()),
              HasSubstr("a page run continues the one before it"));
}

TEST(BodyLimitsTest, RowsOfAFailedItemAreRefusedBothWays) {
  FetchReply reply = testing::GoldenFetchReply();
  reply.items[0].code = absl::StatusCode::kDataLoss;

  EXPECT_THAT(MessageOf(EncodeFetchReply(reply).status()),
              HasSubstr("rows of a failed item is 3, must be 0"));
  EXPECT_THAT(MessageOf(DecodeFetchReply(With("fetch_reply", 20, 15)).status()),
              HasSubstr("rows of a failed item is 3, must be 0"));
}

TEST(BodyLimitsTest, RowsOfAnotherSizeThanTheirGeometrySaysAreRefused) {
  // Of 3 rows, one head part of 8 bits and two of 4, in all 7168 bytes.
  EXPECT_THAT(MessageOf(DecodeFetchReply(With("fetch_reply", 12, 2)).status()),
              HasSubstr("rows needs 8896 x 1 bytes"));
  EXPECT_THAT(
      MessageOf(
          DecodeFetchReply(With("fetch_reply", 112, 0x00040002)).status()),
      HasSubstr("1024 bytes left over"));
}

// Tier and T2 bits are the two halves of one word.
TEST(BodyLimitsTest, WrongTiersAndBitsAreNamed) {
  struct Wrong {
    uint16_t tier, bits;
    const char* error;
  };
  for (const Wrong& wrong : {
           Wrong{0, 0, ": tier is 0, must be 1 or 2"},
           Wrong{3, 0, ": tier is 3, must be 1 or 2"},
           Wrong{0x101, 0, ": tier is 257, must be 1 or 2"},
           Wrong{1, 8, ": T2 bits is 8 with tier 1, must be 0"},
           Wrong{2, 0, ": T2 bits is 0 with tier 2, must be 8 or 4"},
           Wrong{2, 6, ": T2 bits is 6 with tier 2, must be 8 or 4"},
           Wrong{2, 0x108, ": T2 bits is 264 with tier 2, must be 8 or 4"},
       }) {
    const uint32_t word = wrong.tier | uint32_t{wrong.bits} << 16;
    EXPECT_THAT(
        MessageOf(DecodeFetchRequest(With("fetch_request", 12, word)).status()),
        HasSubstr(absl::StrCat("FetchRequest", wrong.error)));
    EXPECT_THAT(
        MessageOf(DecodeFetchReply(With("fetch_reply", 32, word)).status()),
        HasSubstr(absl::StrCat("FetchReply", wrong.error)));
    EXPECT_THAT(
        MessageOf(
            DecodeAttendRequest(With("attend_request", 136, word)).status()),
        HasSubstr(absl::StrCat("AttendRequest", wrong.error)));
    EXPECT_THAT(
        MessageOf(DecodeStoreRequest(With("store_request", 24, word)).status()),
        HasSubstr(absl::StrCat("StoreRequest", wrong.error)));
  }
}

TEST(BodyLimitsTest, EncodersRefuseWrongTiersAndBits) {
  std::vector<FetchItem> items = testing::GoldenFetchRequest();
  items[0].tier = Tier::kT3;
  FetchReply bits = testing::GoldenFetchReply();
  bits.items[2].t2_bits = -4;
  AttendRequest pages = testing::GoldenAttendRequest();
  pages.sequences[0].pages[0].tier = Tier::kT0;

  EXPECT_THAT(MessageOf(EncodeFetchRequest(items, 2).status()),
              HasSubstr("FetchRequest: tier is 3, must be 1 or 2"));
  EXPECT_THAT(MessageOf(EncodeFetchReply(bits).status()),
              HasSubstr("FetchReply: T2 bits is -4 with tier 2"));
  EXPECT_THAT(MessageOf(EncodeAttendRequest(pages).status()),
              HasSubstr("AttendRequest: tier is 0, must be 1 or 2"));
}

TEST(BodyLimitsTest, AT2ItemHasOneChecksumForEachHeadWithRows) {
  FetchReply reply = testing::GoldenFetchReply();
  reply.items[2].rows = {0b1, 0b110};

  EXPECT_THAT(MessageOf(EncodeFetchReply(reply).status()),
              HasSubstr("row CRCs is 1, must be 2"));
}

TEST(BodyLimitsTest, EncodersRefuseWhatDecodersWould) {
  StoreRequest bitmaps = testing::GoldenStoreRequest();
  bitmaps.items[0].live.pop_back();
  StoreRequest crcs = testing::GoldenStoreRequest();
  crcs.items[1].row_crcs.push_back(1);
  StoreRequest negative = testing::GoldenStoreRequest();
  negative.items[0].layer = -1;
  AttendRequest queries = testing::GoldenAttendRequest();
  queries.sequences[0].queries.pop_back();
  AttendRequest previous = testing::GoldenAttendRequest();
  previous.sequences[1].previous.m.pop_back();
  std::vector<AttendSequenceReply> out = testing::GoldenAttendReply();
  out[0].subtrees[0].out.pop_back();

  EXPECT_THAT(MessageOf(EncodeStoreRequest(bitmaps).status()),
              HasSubstr("bitmaps is 1, must be 2"));
  EXPECT_THAT(MessageOf(EncodeStoreRequest(crcs).status()),
              HasSubstr("row CRCs is 3, must be 2"));
  EXPECT_THAT(MessageOf(EncodeStoreRequest(negative).status()),
              HasSubstr("layer is -1"));
  EXPECT_THAT(MessageOf(EncodeAttendRequest(queries).status()),
              HasSubstr("query bytes is 127, must be 128"));
  EXPECT_THAT(MessageOf(EncodeAttendRequest(previous).status()),
              HasSubstr("previous m is 3, must be 4"));
  EXPECT_THAT(MessageOf(EncodeAttendReply(out, 2, 16).status()),
              HasSubstr("out is 31, must be 32"));
  EXPECT_THAT(
      MessageOf(EncodeFetchRequest(testing::GoldenFetchRequest(), -2).status()),
      HasSubstr("KV heads is -2"));
}

TEST(BodyLimitsTest, TooManyItemsOrBytesAreRefused) {
  const std::vector<FetchItem> items(4097, {1, Generation{1}, {0}});
  StoreRequest large = testing::GoldenStoreRequest();
  large.geometry.num_kv_heads = 1;
  large.geometry.head_dim = 512;
  large.geometry.dtype = DType::kF32;
  // 257 full pages of 64 rows of 4 KiB.
  const std::vector<uint32_t> crcs(64, 0);
  large.items.assign(257, {0, 0, Generation{1}, {~uint64_t{0}}, crcs});

  EXPECT_THAT(MessageOf(EncodeFetchRequest(items, 1).status()),
              HasSubstr("items is 4097, at most 4096"));
  // The same as head parts of T2 at 8 bits, 104512 bytes each: 642 fit
  // without the items before them.
  FetchReply reply;
  reply.geometry = large.geometry;
  reply.items.assign(
      642, {0, absl::StatusCode::kOk, Generation{1}, {1}, {0}, Tier::kT2, 8});

  EXPECT_THAT(MessageOf(EncodeStoreRequest(large).status()),
              HasSubstr("body bytes is "));
  large.items.resize(255);
  EXPECT_TRUE(EncodeStoreRequest(large).ok());
  EXPECT_THAT(MessageOf(EncodeFetchReply(reply).status()),
              HasSubstr("FetchReply: body bytes is "));
  reply.items.resize(641);
  EXPECT_TRUE(EncodeFetchReply(reply).ok());
}

// In the worst case each page of a request is a subtree of its reply.
TEST(BodyLimitsTest, TheReplyToAsManyPagesAsARequestMayHaveCanBeEncoded) {
  for (const int heads : {1, 3, 8, 32, 64, 128, 256}) {
    for (const int dim : {16, 64, 128, 256}) {
      SCOPED_TRACE(absl::StrCat(heads, " heads of ", dim));
      const size_t pages = MaxAttendPages(heads, dim, kMaxAttendLeafBytes);
      ASSERT_GE(pages, 1);
      EXPECT_LE(pages * AttendLeafBytes(heads, dim), kMaxAttendLeafBytes);
      EXPECT_LE(pages, kMaxMessageItems);
      AttendSequenceReply reply;
      for (size_t page = 0; page < std::min<size_t>(pages, 3); ++page) {
        AttendSubtree& subtree = reply.subtrees.emplace_back();
        subtree.index = static_cast<uint32_t>(2 * page);
        subtree.m.resize(static_cast<size_t>(heads));
        subtree.l.resize(static_cast<size_t>(heads));
        subtree.out.resize(static_cast<size_t>(heads * dim));
      }
      const size_t few = reply.subtrees.size();
      const auto bytes = EncodeAttendReply({&reply, 1}, heads, dim);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      const uint64_t each = AttendSubtreeBytes(heads, dim);
      const uint64_t other = bytes->size() - few * each;
      EXPECT_LE(other + pages * each, uint64_t{kMaxMessageBytes});
    }
  }
}

}  // namespace
}  // namespace farkv

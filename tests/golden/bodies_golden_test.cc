#include <cstring>

#include "common/page/bodies.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_bodies.h"
#include "tests/golden/golden_file.h"

namespace farkv {
namespace {

using testing::FirstDifference;
using testing::GoldenBytes;
using testing::Pattern;

std::vector<std::byte> Joined(std::vector<std::byte> head,
                              const std::vector<std::byte>& rows) {
  head.insert(head.end(), rows.begin(), rows.end());
  return head;
}

constexpr size_t kStoredBytes =
    5 * testing::kGoldenRowBytes + testing::kGoldenT2Bytes8;

TEST(StoreBodyGoldenTest, ARequestIsTheseBytes) {
  const auto head = EncodeStoreRequest(testing::GoldenStoreRequest());

  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(FirstDifference(Joined(*head, Pattern(kStoredBytes)),
                            GoldenBytes("store_request")),
            "");
}

TEST(StoreBodyGoldenTest, ARequestReadsBackFromTheseBytes) {
  const std::vector<std::byte> body = GoldenBytes("store_request");

  const auto decoded = DecodeStoreRequest(body);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const StoreRequest expected = testing::GoldenStoreRequest();
  EXPECT_EQ(decoded->message.geometry, expected.geometry);
  ASSERT_EQ(decoded->message.items.size(), expected.items.size());
  for (size_t i = 0; i < expected.items.size(); ++i) {
    const StoreItem& item = decoded->message.items[i];
    EXPECT_EQ(item.layer, expected.items[i].layer);
    EXPECT_EQ(item.page_index, expected.items[i].page_index);
    EXPECT_EQ(item.generation, expected.items[i].generation);
    EXPECT_EQ(item.live, expected.items[i].live);
    EXPECT_EQ(item.row_crcs, expected.items[i].row_crcs);
    EXPECT_EQ(item.tier, expected.items[i].tier);
    EXPECT_EQ(item.t2_bits, expected.items[i].t2_bits);
  }
  EXPECT_EQ(decoded->rows.data(), body.data() + body.size() - kStoredBytes);
  EXPECT_EQ(decoded->rows.size(), kStoredBytes);
}

TEST(StoreBodyGoldenTest, AReplyIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("store_reply");

  const auto codes = DecodeStoreReply(golden);

  ASSERT_TRUE(codes.ok()) << codes.status();
  EXPECT_EQ(*codes, testing::GoldenStoreReply());
  EXPECT_EQ(
      FirstDifference(EncodeStoreReply(testing::GoldenStoreReply()), golden),
      "");
}

TEST(FetchBodyGoldenTest, ARequestIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("fetch_request");
  const std::vector<FetchItem> expected = testing::GoldenFetchRequest();

  const auto encoded = EncodeFetchRequest(expected, 2);
  const auto decoded = DecodeFetchRequest(golden);

  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(FirstDifference(*encoded, golden), "");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_EQ(decoded->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*decoded)[i].page_index, expected[i].page_index);
    EXPECT_EQ((*decoded)[i].generation, expected[i].generation);
    EXPECT_EQ((*decoded)[i].rows, expected[i].rows);
    EXPECT_EQ((*decoded)[i].tier, expected[i].tier);
    EXPECT_EQ((*decoded)[i].t2_bits, expected[i].t2_bits);
  }
}

TEST(FetchBodyGoldenTest, AReplyIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("fetch_reply");
  const FetchReply expected = testing::GoldenFetchReply();
  const size_t row_bytes = 3 * testing::kGoldenRowBytes +
                           testing::kGoldenT2Bytes8 +
                           2 * testing::kGoldenT2Bytes4;

  const auto encoded = EncodeFetchReply(expected);
  const auto decoded = DecodeFetchReply(golden);

  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(FirstDifference(Joined(*encoded, Pattern(row_bytes)), golden), "");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->message.geometry, expected.geometry);
  ASSERT_EQ(decoded->message.items.size(), expected.items.size());
  for (size_t i = 0; i < expected.items.size(); ++i) {
    const FetchReplyItem& found = decoded->message.items[i];
    const FetchReplyItem& wanted = expected.items[i];
    EXPECT_EQ(found.page_index, wanted.page_index);
    EXPECT_EQ(found.code, wanted.code);
    EXPECT_EQ(found.generation, wanted.generation);
    EXPECT_EQ(found.rows, wanted.rows);
    EXPECT_EQ(found.row_crcs, wanted.row_crcs);
    EXPECT_EQ(found.tier, wanted.tier);
    EXPECT_EQ(found.t2_bits, wanted.t2_bits);
  }
  EXPECT_EQ(decoded->rows.size(), row_bytes);
}

TEST(AttendBodyGoldenTest, ARequestIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("attend_request");
  const AttendRequest expected = testing::GoldenAttendRequest();

  const auto encoded = EncodeAttendRequest(expected);
  const auto decoded = DecodeAttendRequest(golden);

  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(FirstDifference(*encoded, golden), "");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->geometry, expected.geometry);
  EXPECT_EQ(decoded->num_query_heads, 4);
  EXPECT_EQ(decoded->scale, 0.25f);
  ASSERT_EQ(decoded->sequences.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const AttendSequence& found = decoded->sequences[i];
    const AttendSequence& wanted = expected.sequences[i];
    EXPECT_EQ(found.session, wanted.session);
    EXPECT_EQ(found.position, wanted.position);
    EXPECT_EQ(found.has_previous, wanted.has_previous);
    EXPECT_EQ(found.scored, wanted.scored);
    EXPECT_EQ(found.previous.step, wanted.previous.step);
    EXPECT_EQ(found.previous.m, wanted.previous.m);
    EXPECT_EQ(found.previous.l, wanted.previous.l);
    EXPECT_EQ(found.queries, wanted.queries);
    ASSERT_EQ(found.pages.size(), wanted.pages.size());
    for (size_t p = 0; p < wanted.pages.size(); ++p) {
      EXPECT_EQ(found.pages[p].page_index, wanted.pages[p].page_index);
      EXPECT_EQ(found.pages[p].generation, wanted.pages[p].generation);
      EXPECT_EQ(found.pages[p].live, wanted.pages[p].live);
      EXPECT_EQ(found.pages[p].tier, wanted.pages[p].tier);
      EXPECT_EQ(found.pages[p].t2_bits, wanted.pages[p].t2_bits);
    }
  }
}

TEST(AttendBodyGoldenTest, AReplyIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("attend_reply");
  const std::vector<AttendSequenceReply> expected =
      testing::GoldenAttendReply();

  const auto encoded = EncodeAttendReply(expected, 2, 16);
  const auto decoded = DecodeAttendReply(golden);

  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(FirstDifference(*encoded, golden), "");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_EQ(decoded->size(), 2u);
  EXPECT_EQ((*decoded)[1].code, absl::StatusCode::kUnavailable);
  EXPECT_TRUE((*decoded)[1].subtrees.empty());
  EXPECT_EQ((*decoded)[1].failed_page, 900u);
  EXPECT_EQ((*decoded)[0].failed_page, kNoPage);
  ASSERT_EQ((*decoded)[0].subtrees.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const AttendSubtree& found = (*decoded)[0].subtrees[i];
    const AttendSubtree& wanted = expected[0].subtrees[i];
    EXPECT_EQ(found.level, wanted.level);
    EXPECT_EQ(found.index, wanted.index);
    EXPECT_EQ(found.m, wanted.m);
    EXPECT_EQ(found.l, wanted.l);
    EXPECT_EQ(found.out, wanted.out);
  }
}

TEST(ScoresBodyGoldenTest, ARequestIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("scores_request");
  const ScoresRequest expected = testing::GoldenScoresRequest();

  const auto encoded = EncodeScoresRequest(expected);
  const auto decoded = DecodeScoresRequest(golden);

  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(FirstDifference(*encoded, golden), "");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->num_query_heads, 2);
  EXPECT_EQ(decoded->collection, 6u);
  EXPECT_EQ(decoded->pages, expected.pages);
  ASSERT_EQ(decoded->layers.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(decoded->layers[i].layer, expected.layers[i].layer);
    const AttendGlobals& found = decoded->layers[i].globals;
    EXPECT_EQ(found.step, expected.layers[i].globals.step);
    EXPECT_EQ(found.m, expected.layers[i].globals.m);
    EXPECT_EQ(found.l, expected.layers[i].globals.l);
  }
}

TEST(ScoresBodyGoldenTest, AReplyIsTheseBytesAndReadsBack) {
  const std::vector<std::byte> golden = GoldenBytes("scores_reply");
  const std::vector<PageScores> expected = testing::GoldenScoresReply();

  const auto decoded = DecodeScoresReply(golden);

  EXPECT_EQ(FirstDifference(EncodeScoresReply(expected), golden), "");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_EQ(decoded->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*decoded)[i].page_index, expected[i].page_index);
    EXPECT_EQ((*decoded)[i].sums, expected[i].sums);
  }
}

}  // namespace
}  // namespace farkv

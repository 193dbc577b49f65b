// Random messages come back as they went: the second encoding has the same
// bytes as the first. The golden tests compare the fields.
#include <algorithm>
#include <bit>
#include <random>

#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

class BodyRoundTripTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  size_t Below(size_t limit) { return random_() % limit; }
  uint64_t Bitmap() { return random_() & random_() & random_(); }
  Generation AnyGeneration() { return Generation{random_()}; }
  int32_t Index() { return static_cast<int32_t>(Below(1u << 31)); }
  float Float() {
    return std::bit_cast<float>(static_cast<uint32_t>(random_()));
  }
  std::vector<float> Floats(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = Float();
    return values;
  }
  std::vector<uint64_t> Bitmaps(size_t heads) {
    std::vector<uint64_t> bitmaps(heads);
    for (uint64_t& bitmap : bitmaps) bitmap = Bitmap();
    return bitmaps;
  }
  std::vector<uint32_t> Crcs(const std::vector<uint64_t>& bitmaps) {
    std::vector<uint32_t> crcs;
    for (uint64_t bitmap : bitmaps) {
      for (int i = 0; i < std::popcount(bitmap); ++i) {
        crcs.push_back(static_cast<uint32_t>(random_()));
      }
    }
    return crcs;
  }
  // In T2 one for each head that has rows.
  std::vector<uint32_t> CrcsOf(Tier tier,
                               const std::vector<uint64_t>& bitmaps) {
    std::vector<uint32_t> crcs = Crcs(bitmaps);
    if (tier == Tier::kT2) {
      crcs.resize(bitmaps.size() -
                  static_cast<size_t>(
                      std::count(bitmaps.begin(), bitmaps.end(), uint64_t{0})));
    }
    return crcs;
  }
  // T1 half of the time, else T2 at either width.
  void AnyTier(Tier& tier, int& t2_bits) {
    if (Below(2) == 0) return;
    tier = Tier::kT2;
    t2_bits = Below(2) == 0 ? 8 : 4;
  }
  KvGeometry Geometry() {
    KvGeometry geometry;
    geometry.num_kv_heads = static_cast<int32_t>(1 + Below(9));
    geometry.head_dim = static_cast<int32_t>(16 * (1 + Below(8)));
    geometry.dtype = Below(2) == 0 ? DType::kBf16 : DType::kF32;
    return geometry;
  }
  std::vector<std::byte> Bytes(size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  std::mt19937_64 random_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Seeds, BodyRoundTripTest,
                         ::testing::Range<uint64_t>(0, 24));

std::vector<std::byte> Joined(std::vector<std::byte> head,
                              const std::vector<std::byte>& rows) {
  head.insert(head.end(), rows.begin(), rows.end());
  return head;
}

TEST_P(BodyRoundTripTest, StoreRequest) {
  StoreRequest request;
  request.geometry = Geometry();
  const auto heads = static_cast<size_t>(request.geometry.num_kv_heads);
  size_t row_bytes = 0;
  for (size_t i = Below(5); i > 0; --i) {
    StoreItem item{Index(), Index(), AnyGeneration(), Bitmaps(heads), {}};
    AnyTier(item.tier, item.t2_bits);
    item.row_crcs = CrcsOf(item.tier, item.live);
    row_bytes += item.RowsBytes(request.geometry);
    request.items.push_back(item);
  }
  const auto head = EncodeStoreRequest(request);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->size() % 64, 0u);
  const std::vector<std::byte> payload = Bytes(row_bytes);
  const std::vector<std::byte> body = Joined(*head, payload);

  const auto decoded = DecodeStoreRequest(body);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*EncodeStoreRequest(decoded->message), *head);
  EXPECT_TRUE(std::equal(decoded->rows.begin(), decoded->rows.end(),
                         payload.begin(), payload.end()));
}

TEST_P(BodyRoundTripTest, FetchRequest) {
  const size_t heads = 1 + Below(9);
  std::vector<FetchItem> items;
  for (size_t i = Below(6); i > 0; --i) {
    items.push_back({Index(), AnyGeneration(), Bitmaps(heads)});
    AnyTier(items.back().tier, items.back().t2_bits);
  }
  const auto body = EncodeFetchRequest(items, static_cast<int>(heads));
  ASSERT_TRUE(body.ok()) << body.status();

  const auto decoded = DecodeFetchRequest(*body);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*EncodeFetchRequest(*decoded, static_cast<int>(heads)), *body);
}

TEST_P(BodyRoundTripTest, FetchReply) {
  FetchReply reply;
  reply.geometry = Geometry();
  const auto heads = static_cast<size_t>(reply.geometry.num_kv_heads);
  size_t row_bytes = 0;
  for (size_t i = Below(6); i > 0; --i) {
    FetchReplyItem item{
        Index(), absl::StatusCode::kOk, AnyGeneration(), Bitmaps(heads), {}};
    AnyTier(item.tier, item.t2_bits);
    item.rows[Below(heads)] = 0;
    if (Below(3) == 0) {
      item.code = static_cast<absl::StatusCode>(1 + Below(16));
      item.rows.assign(heads, 0);
    }
    item.row_crcs = CrcsOf(item.tier, item.rows);
    size_t unit = reply.geometry.RowBytes();
    if (item.tier == Tier::kT2) {
      unit = T2HeadLayout::Of(reply.geometry, item.t2_bits).head_bytes;
    }
    EXPECT_EQ(item.RowsBytes(reply.geometry), item.row_crcs.size() * unit);
    row_bytes += item.row_crcs.size() * unit;
    reply.items.push_back(item);
  }
  const auto head = EncodeFetchReply(reply);
  ASSERT_TRUE(head.ok()) << head.status();
  const std::vector<std::byte> payload = Bytes(row_bytes);
  const std::vector<std::byte> body = Joined(*head, payload);

  const auto decoded = DecodeFetchReply(body);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->message.geometry, reply.geometry);
  EXPECT_EQ(*EncodeFetchReply(decoded->message), *head);
  EXPECT_TRUE(std::equal(decoded->rows.begin(), decoded->rows.end(),
                         payload.begin(), payload.end()));
}

TEST_P(BodyRoundTripTest, AttendRequest) {
  AttendRequest request;
  request.geometry = Geometry();
  const auto heads = static_cast<size_t>(request.geometry.num_kv_heads);
  const size_t query_heads = heads * (1 + Below(4));
  request.num_query_heads = static_cast<int32_t>(query_heads);
  request.scale = 0.125f;
  for (size_t i = Below(4); i > 0; --i) {
    AttendSequence sequence;
    sequence.session = SessionId::Random();
    sequence.position = static_cast<int64_t>(Below(size_t{1} << 62));
    sequence.has_previous = Below(2) == 0;
    if (sequence.has_previous) {
      sequence.previous = {random_(), Floats(query_heads), Floats(query_heads)};
    }
    sequence.scored = Below(2) == 0;
    // Often the next page, of the same kind: page runs.
    int32_t index = static_cast<int32_t>(Below(1000));
    for (size_t p = Below(12); p > 0; --p) {
      AttendPage page{index, AnyGeneration(), {}};
      if (Below(3) == 0) page.live = Bitmaps(heads);
      if (Below(3) == 0) AnyTier(page.tier, page.t2_bits);
      sequence.pages.push_back(page);
      index += 1 + static_cast<int32_t>(Below(3) == 0 ? Below(5000) : 0);
    }
    sequence.queries = Bytes(query_heads * request.geometry.VectorBytes());
    request.sequences.push_back(sequence);
  }
  const auto body = EncodeAttendRequest(request);
  ASSERT_TRUE(body.ok()) << body.status();

  const auto decoded = DecodeAttendRequest(*body);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*EncodeAttendRequest(*decoded), *body);
}

TEST_P(BodyRoundTripTest, AttendReply) {
  const size_t query_heads = 1 + Below(16);
  const size_t dim = 16 * (1 + Below(8));
  std::vector<AttendSequenceReply> replies(Below(4));
  for (AttendSequenceReply& reply : replies) {
    if (Below(4) == 0) {
      reply.code = static_cast<absl::StatusCode>(1 + Below(16));
      if (Below(2) == 0) reply.failed_page = static_cast<uint32_t>(Index());
      continue;
    }
    for (size_t i = Below(4); i > 0; --i) {
      const auto level = static_cast<uint32_t>(Below(32));
      const auto index =
          static_cast<uint32_t>(Below(size_t{1} << (31 - level)));
      reply.subtrees.push_back({level, index, Floats(query_heads),
                                Floats(query_heads),
                                Floats(query_heads * dim)});
    }
  }
  const auto body = EncodeAttendReply(replies, static_cast<int>(query_heads),
                                      static_cast<int>(dim));
  ASSERT_TRUE(body.ok()) << body.status();

  const auto decoded = DecodeAttendReply(*body);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*EncodeAttendReply(*decoded, static_cast<int>(query_heads),
                               static_cast<int>(dim)),
            *body);
}

TEST_P(BodyRoundTripTest, StoreReply) {
  std::vector<absl::StatusCode> codes(Below(50));
  for (absl::StatusCode& code : codes) {
    code = static_cast<absl::StatusCode>(Below(17));
  }

  const auto decoded = DecodeStoreReply(EncodeStoreReply(codes));

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, codes);
}

}  // namespace
}  // namespace farkv

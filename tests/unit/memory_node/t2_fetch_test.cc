// Fetches of compressed pages: whole head parts.
#include <cstring>

#include "common/base/crc32c.h"
#include "common/page/bodies.h"
#include "common/telemetry/metrics.h"
#include "memory_node/data/fetch_handler.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;

class T2FetchTest : public DirectoryFixture {
 protected:
  T2FetchTest() {
    Open();
    t1_ = ReserveAndStore(1, {0, 0}).generation;
    ReserveAndStore(2, {0, 1});
    t2_ = Compress(3, ToT2({0, 1})).generation;
  }
  // The reply as its receiver decodes it.
  FetchReply Fetch(const std::vector<FetchItem>& items) {
    const FetchedRows fetched =
        FetchPages(
            directory_, Caller(), 0, EncodeFetchRequest(items, 2).value(),
            [](size_t bytes) -> absl::StatusOr<BufferLease> {
              return BufferLease::Owning(std::vector<std::byte>(bytes));
            },
            data_metrics_)
            .value();
    body_ = fetched.head;
    const std::span<const std::byte> rows = fetched.rows.bytes();
    body_.insert(body_.end(), rows.begin(), rows.end());
    auto decoded = DecodeFetchReply(body_);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    rows_ = decoded->rows;
    return decoded->message;
  }

  Generation t1_, t2_;
  Metrics metrics_;
  DataMetrics data_metrics_{metrics_};
  std::vector<std::byte> body_;
  std::span<const std::byte> rows_;
};

TEST_F(T2FetchTest, PartsOfHeadsWithWantedRowsComeWholeBesideRowsOfT1) {
  const FetchReply reply = Fetch({{0, t1_, {1, 0}},
                                  {1, t2_, {0, 6}, Tier::kT2, 8},
                                  {1, t2_, {1, 6}, Tier::kT2, 8}});

  const size_t row = kSmallGeometry.RowBytes();
  const size_t part = T2HeadLayout::Of(kSmallGeometry, 8).head_bytes;
  ASSERT_EQ(rows_.size(), row + 3 * part);
  EXPECT_EQ(reply.items[1].tier, Tier::kT2);
  EXPECT_EQ(reply.items[1].t2_bits, 8);
  EXPECT_EQ(reply.items[1].generation, t2_);
  EXPECT_THAT(reply.items[1].rows, ElementsAre(0, 6));
  EXPECT_THAT(reply.items[1].row_crcs,
              ElementsAre(Crc32c(rows_.subspan(row, part))));
  EXPECT_THAT(reply.items[2].row_crcs,
              ElementsAre(Crc32c(rows_.subspan(row + part, part)),
                          Crc32c(rows_.subspan(row + 2 * part, part))));
  const StoredPage page = directory_.PinStored(TestSession(1), {0, 1}).value();
  EXPECT_EQ(std::memcmp(rows_.data() + row + part,
                        page.pin.data() +
                            PageLayout::T2(kSmallGeometry, 8).header_bytes,
                        2 * part),
            0);
}

TEST_F(T2FetchTest, AWrongViewOfAPageIsRefusedForItself) {
  const FetchReply reply = Fetch({{1, t2_, {1, 1}},
                                  {1, t2_, {1, 1}, Tier::kT2, 4},
                                  {0, t1_, {1, 1}, Tier::kT2, 8},
                                  {1, t2_, {1, 1}, Tier::kT2, 8}});

  std::vector<absl::StatusCode> codes;
  for (const FetchReplyItem& item : reply.items) codes.push_back(item.code);
  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kFailedPrecondition,
                                 absl::StatusCode::kFailedPrecondition,
                                 absl::StatusCode::kFailedPrecondition,
                                 absl::StatusCode::kOk));
}

TEST_F(T2FetchTest, TheRowsAsTheyWereStoredComeUnderTheOldGeneration) {
  const Generation old = ReserveAndStore(4, {0, 2}).generation;
  Fetch({{2, old, {~0ull, 3}}});
  const std::vector<std::byte> before(rows_.begin(), rows_.end());
  ASSERT_TRUE(Compress(5, ToT2({0, 2})).status.ok());

  const FetchReply reply = Fetch({{2, old, {~0ull, 3}}});

  EXPECT_EQ(reply.items[0].code, absl::StatusCode::kOk);
  EXPECT_EQ(std::vector<std::byte>(rows_.begin(), rows_.end()), before);
}

}  // namespace
}  // namespace farkv

// Workers that stop reading, and what that costs the others: nothing.
#include "tests/unit/memory_node/data_plane_fixture.h"

namespace farkv {
namespace {

class ReplySharesTest : public DataPlaneTest {
 protected:
  ReplySharesTest() {
    EXPECT_TRUE(Hello().ok());
    whole_page_ = {{0, StoredPage({0, 0}), AllRows()}};
  }

  // Workers that ask for `body` so often each and are stopped before they can
  // receive an answer.
  void FreezeWorkers(int workers, int requests, MessageType type,
                     const std::vector<std::byte>& body) {
    for (int i = 0; i < workers; ++i) {
      AddProvenOther(static_cast<uint8_t>(2 + i)).session = 1;
    }
    for (const Other& worker : others_) {
      for (int n = 0; n < requests; ++n) Post(worker, type, body);
    }
    network_.Step();  // the requests arrive; nothing is answered yet
    for (const Other& other : others_) network_.SetFrozen(other.port, true);
    RunAll();
  }

  // Workers that stop reading send more pings than there are slots; each
  // answer has `bytes` bytes.
  void ExpectSlotsForAnother(uint8_t bytes) {
    TransportOptions bounds;
    DataPlane::BoundReplies(bounds);
    ASSERT_LT(bounds.max_operations, 17 * 250);
    std::vector<std::byte> body(sizeof(uint32_t));
    body[0] = std::byte{bytes};
    FreezeWorkers(17, 250, MessageType::kPingRequest, body);
    EXPECT_GT(node_->counters().open_operations, 1000u);

    for (int i = 0; i < 50; ++i) {
      const auto reply = Fetch(0, whole_page_);
      ASSERT_TRUE(reply.ok()) << reply.status();
    }
  }

  std::vector<FetchItem> whole_page_;
};

TEST_F(ReplySharesTest, BytesForWorkersThatStoppedReadingRefuseNoOther) {
  FreezeWorkers(5, 40, MessageType::kFetchRequest,
                EncodeFetchRequest(whole_page_, 2).value());
  EXPECT_GE(data_plane_.reply_bytes(), kReplyBytes - (8 << 10));
  EXPECT_LE(data_plane_.reply_bytes(), PeerShares::kCeiling * kReplyBytes);

  for (int i = 0; i < 50; ++i) {
    const auto reply = Fetch(0, whole_page_);
    ASSERT_TRUE(reply.ok()) << reply.status();
  }
}

TEST_F(ReplySharesTest, SlotsForWorkersThatStoppedReadingRefuseNoOther) {
  ExpectSlotsForAnother(1);
}

// A refusal is an answer without a body, too.
TEST_F(ReplySharesTest, NorDoSlotsOfAnswersWithoutABody) {
  ExpectSlotsForAnother(0);
}

TEST_F(ReplySharesTest, AWorkerThatDoesNotReadIsClosedInTime) {
  FreezeWorkers(3, 8, MessageType::kFetchRequest,
                EncodeFetchRequest(whole_page_, 2).value());
  ASSERT_GT(data_plane_.reply_bytes(), 0u);
  ASSERT_EQ(data_plane_.peers().size(), 4u);

  TransportOptions bounds;
  DataPlane::BoundReplies(bounds);
  EXPECT_LE(bounds.reply_timeout, absl::Seconds(10));
  clock_.Advance(bounds.reply_timeout);
  RunAll();

  EXPECT_EQ(data_plane_.reply_bytes(), 0u);
  EXPECT_EQ(data_plane_.peers().size(), 1u);
}

}  // namespace
}  // namespace farkv

#include "common/transport/loopback_transport.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/transport/stepped_pair.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(LoopbackTransportTest, NothingMovesBeforeAStep) {
  SteppedPair pair;

  pair.Submit();
  pair.executor.RunAll();

  EXPECT_THAT(pair.requests, IsEmpty());
  pair.Settle();
  EXPECT_THAT(pair.requests, SizeIs(1));
}

TEST(LoopbackTransportTest, ACancelBeforePostingReturnsTheBytesAtOnce) {
  SteppedPair pair;
  const OperationId operation = pair.Submit();

  pair.client->Cancel(operation);

  EXPECT_EQ(pair.released, 1);
  pair.Settle();
  EXPECT_THAT(pair.codes, ElementsAre(absl::StatusCode::kCancelled));
  EXPECT_THAT(pair.requests, IsEmpty());
}

TEST(LoopbackTransportTest, ACancelAfterPostingKeepsTheBytesUntilTheSendEnds) {
  SteppedPair pair;
  pair.network.HoldSends(true);
  const OperationId operation = pair.Submit();
  pair.Settle();

  pair.client->Cancel(operation);
  pair.Settle();

  EXPECT_THAT(pair.codes, ElementsAre(absl::StatusCode::kCancelled));
  EXPECT_EQ(pair.released, 0);
  pair.network.HoldSends(false);
  pair.Settle();
  EXPECT_EQ(pair.released, 1);
}

TEST(LoopbackTransportTest, AReplyBeforeTheSendIsFinalCompletesTheOperation) {
  SteppedPair pair;
  pair.network.HoldSends(true);
  pair.Submit();
  pair.Settle();

  pair.Reply(pair.requests.at(0));
  pair.Settle();

  EXPECT_THAT(pair.codes, ElementsAre(absl::StatusCode::kOk));
  EXPECT_EQ(pair.released, 0);
  pair.client->ClosePeer(pair.peer);
  pair.Settle();
  EXPECT_EQ(pair.released, 1);
}

TEST(LoopbackTransportTest, AFrozenPeerMeansTheDeadlineAndNothingElse) {
  SteppedPair pair;
  pair.network.SetFrozen(pair.port, true);
  pair.Submit(absl::Seconds(1));
  pair.Settle();

  pair.clock.Advance(absl::Milliseconds(999));
  pair.Settle();
  EXPECT_THAT(pair.codes, IsEmpty());
  pair.clock.Advance(absl::Milliseconds(1));
  pair.Settle();

  EXPECT_THAT(pair.codes, ElementsAre(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(pair.released, 0);  // still under way to the frozen peer
  pair.client->ClosePeer(pair.peer);
  pair.Settle();
  EXPECT_EQ(pair.released, 1);
}

TEST(LoopbackTransportTest, ADeadlineFreesAQueuedOperationsBytes) {
  SteppedPair pair;
  pair.Submit(absl::Seconds(1));

  pair.clock.Advance(absl::Seconds(2));
  pair.Settle();

  EXPECT_THAT(pair.codes, ElementsAre(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(pair.released, 1);
}

TEST(LoopbackTransportTest, AReplyNobodyTakesFailsItsPeer) {
  SteppedPair pair;
  pair.Submit(absl::Hours(1));
  pair.Settle();
  pair.network.HoldSends(true);
  pair.Reply(pair.requests.at(0));
  pair.Settle();
  ASSERT_TRUE(pair.server->Reply(pair.requests[0].peer, {}, {}).code() ==
              absl::StatusCode::kInvalidArgument);

  pair.clock.Advance(TransportOptions().reply_timeout);
  pair.Settle();

  MessageHeader header;
  header.type = MessageType::kPingReply;
  EXPECT_FALSE(pair.server->Reply(pair.requests[0].peer, header, {}).ok());
}

}  // namespace
}  // namespace farkv

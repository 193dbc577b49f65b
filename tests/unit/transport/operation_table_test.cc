#include "common/transport/operation_table.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/stepping_executor.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OperationTableTest : public ::testing::Test {
 protected:
  OperationTableTest() {
    options_.executor = &executor_;
    options_.clock = &clock_;
    options_.on_peer_lost = [this](PeerId, absl::Status) {
      events_.push_back("lost");
    };
  }
  void Create() {
    table_ = OperationTable::Create(std::move(options_), [] {});
    peer_ = table_->AddPeer("peer").value();
  }
  absl::Status Submit() {
    Request request;
    request.header.type = MessageType::kPingRequest;
    request.timeout = absl::Seconds(1);
    return table_
        ->Submit(peer_, std::move(request),
                 [this](absl::StatusOr<Message> reply) {
                   events_.push_back(
                       absl::StatusCodeToString(reply.status().code()));
                 })
        .status();
  }

  ManualClock clock_;
  SteppingExecutor executor_;
  TransportOptions options_;
  std::shared_ptr<OperationTable> table_;
  PeerId peer_;
  std::vector<std::string> events_;
};

TEST_F(OperationTableTest, ALostPeerIsReportedAfterItsOperations) {
  Create();
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(Submit().ok());

  table_->FailPeer(peer_, absl::UnavailableError("gone"), true);
  table_->FailPeer(peer_, absl::UnavailableError("again"), true);
  executor_.RunAll();

  EXPECT_THAT(events_, ElementsAre("UNAVAILABLE", "UNAVAILABLE", "lost"));
}

TEST_F(OperationTableTest, APeersPlaceIsUsedAgainUnderANewGeneration) {
  options_.max_peers = 1;
  Create();
  const PeerId old = peer_;
  EXPECT_EQ(table_->AddPeer("second").status().code(),
            absl::StatusCode::kResourceExhausted);

  table_->FailPeer(old, absl::UnavailableError("gone"), false);
  table_->RemovePeer(old);

  peer_ = table_->AddPeer("second").value();
  EXPECT_NE(peer_, old);
  EXPECT_EQ(table_->CheckOpen(old).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Submit().ok());
}

TEST_F(OperationTableTest, ASlotIsNotUsedAgainBeforeItsSendIsFinal) {
  options_.max_operations = 1;
  Create();
  ASSERT_TRUE(Submit().ok());
  const auto posted = table_->TakeQueued();
  ASSERT_THAT(posted, SizeIs(1));
  clock_.Advance(absl::Seconds(2));
  table_->Expire();
  executor_.RunAll();
  EXPECT_THAT(events_, ElementsAre("DEADLINE_EXCEEDED"));

  EXPECT_EQ(Submit().code(), absl::StatusCode::kResourceExhausted);
  table_->SendFinal(posted[0].slot, absl::OkStatus());

  EXPECT_TRUE(Submit().ok());
}

TEST_F(OperationTableTest, ASlotIsNotUsedAgainBeforeItsCallbackBegins) {
  options_.max_operations = 1;
  Create();
  ASSERT_TRUE(Submit().ok());
  table_->SendFinal(table_->TakeQueued()[0].slot, absl::OkStatus());
  clock_.Advance(absl::Seconds(2));
  table_->Expire();

  EXPECT_EQ(Submit().code(), absl::StatusCode::kResourceExhausted);
  executor_.RunAll();

  EXPECT_TRUE(Submit().ok());
}

TEST_F(OperationTableTest, OnlyOneOfTwoEqualRepliesIsWanted) {
  Create();
  ASSERT_TRUE(Submit().ok());
  const auto posted = table_->TakeQueued();
  MessageHeader reply = DecodeHeader(*posted[0].header).value();
  reply.type = MessageType::kPingReply;

  EXPECT_TRUE(table_->Admit(peer_, reply));
  EXPECT_FALSE(table_->Admit(peer_, reply));
  table_->AbandonReceive(peer_, reply);

  EXPECT_TRUE(table_->Admit(peer_, reply));
  Message message;
  message.header = reply;
  table_->Deliver(peer_, std::move(message));
  EXPECT_FALSE(table_->Admit(peer_, reply));
  executor_.RunAll();
  EXPECT_THAT(events_, ElementsAre("OK"));
}

TEST_F(OperationTableTest, AReplyFromAnotherPeerIsNotWanted) {
  Create();
  const PeerId other = table_->AddPeer("other").value();
  ASSERT_TRUE(Submit().ok());
  const auto posted = table_->TakeQueued();
  MessageHeader reply = DecodeHeader(*posted[0].header).value();
  reply.type = MessageType::kPingReply;

  EXPECT_FALSE(table_->Admit(other, reply));

  EXPECT_EQ(table_->counters().dropped_messages, 1u);
  EXPECT_TRUE(table_->Admit(peer_, reply));
}

TEST_F(OperationTableTest, AReplyThereIsNoMemoryForEndsItsOperation) {
  Create();
  ASSERT_TRUE(Submit().ok());
  const auto posted = table_->TakeQueued();
  MessageHeader reply = DecodeHeader(*posted.at(0).header).value();
  table_->SendFinal(posted[0].slot, absl::OkStatus());
  reply.type = MessageType::kPingReply;
  ASSERT_TRUE(table_->Admit(peer_, reply));

  table_->RefuseReceive(peer_, reply);
  executor_.RunAll();

  EXPECT_THAT(events_, ElementsAre("RESOURCE_EXHAUSTED"));
  EXPECT_FALSE(table_->Admit(peer_, reply));
  EXPECT_EQ(table_->counters().completed, 1u);
}

TEST_F(OperationTableTest, AReplyOfOtherRowsThanWereAskedForIsNotWanted) {
  Create();
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.header.session = SessionId::Random();
  request.header.layer = 3;
  request.header.step = 7;
  request.header.epoch = Epoch{5};
  request.timeout = absl::Seconds(1);
  ASSERT_TRUE(
      table_->Submit(peer_, std::move(request), [](absl::StatusOr<Message>) {})
          .ok());
  const auto posted = table_->TakeQueued();
  MessageHeader reply = DecodeHeader(*posted[0].header).value();
  reply.type = MessageType::kFetchReply;

  MessageHeader wrong = reply;
  wrong.session = SessionId::Random();
  EXPECT_FALSE(table_->Admit(peer_, wrong));
  wrong = reply;
  wrong.layer = 4;
  EXPECT_FALSE(table_->Admit(peer_, wrong));
  wrong = reply;
  wrong.step = 6;
  EXPECT_FALSE(table_->Admit(peer_, wrong));
  wrong = reply;
  wrong.epoch = Epoch{4};
  EXPECT_FALSE(table_->Admit(peer_, wrong));

  EXPECT_EQ(table_->counters().dropped_messages, 4u);
  EXPECT_TRUE(table_->Admit(peer_, reply));
}

TEST_F(OperationTableTest, ARefusalMayNameAnotherEpoch) {
  Create();
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.header.epoch = Epoch{5};
  request.timeout = absl::Seconds(1);
  ASSERT_TRUE(
      table_->Submit(peer_, std::move(request), [](absl::StatusOr<Message>) {})
          .ok());
  MessageHeader reply = DecodeHeader(*table_->TakeQueued()[0].header).value();
  reply.type = MessageType::kFetchReply;
  reply.epoch = Epoch{6};
  reply.code = absl::StatusCode::kFailedPrecondition;

  EXPECT_TRUE(table_->Admit(peer_, reply));
}

// A reply to the one operation that is posted, as it arrives.
Message ErrorTo(const EncodedHeader& request, absl::StatusCode code) {
  Message message;
  message.header = DecodeHeader(request).value();
  message.header.type = MessageType::kPingReply;
  message.header.code = code;
  message.header_bytes = EncodeHeader(message.header, {});
  return message;
}

TEST_F(OperationTableTest, AnErrorWhoseChecksumIsWrongIsNotBelieved) {
  Create();
  for (const bool damaged : {false, true}) {
    events_.clear();
    ASSERT_TRUE(Submit().ok());
    const auto posted = table_->TakeQueued();
    table_->SendFinal(posted[0].slot, absl::OkStatus());
    Message reply = ErrorTo(*posted[0].header, absl::StatusCode::kNotFound);
    // The code that arrives is another one than was sent.
    if (damaged) {
      const MessageHeader sent = reply.header;
      reply = ErrorTo(*posted[0].header, absl::StatusCode::kAborted);
      const EncodedHeader before = EncodeHeader(sent, {});
      std::copy(before.end() - 4, before.end(), reply.header_bytes.end() - 4);
    }
    ASSERT_TRUE(table_->Admit(peer_, reply.header));

    table_->Deliver(peer_, std::move(reply));
    executor_.RunAll();

    EXPECT_THAT(events_, ElementsAre(damaged ? "DATA_LOSS" : "NOT_FOUND"));
  }
}

TEST_F(OperationTableTest, ARefusalNeverTakesTheLastPlacesOfReplies) {
  options_.max_operations_per_peer = 2;
  options_.on_request = [](Incoming) {};
  Create();
  MessageHeader request;
  std::vector<Message> received(2);
  for (Message& message : received) {
    ASSERT_TRUE(table_->Admit(peer_, request));
    message.header = request;
  }
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(table_->Admit(peer_, request));

  MessageHeader reply = request;
  reply.type = MessageType::kPingReply;

  EXPECT_TRUE(table_->Reply(peer_, reply, {}).ok());
  EXPECT_TRUE(table_->Reply(peer_, reply, {}).ok());
  EXPECT_THAT(table_->TakeQueued(), SizeIs(4));  // two refusals, two replies
}

TEST_F(OperationTableTest, AReplyBeyondTheBytesBecomesARefusal) {
  options_.max_bytes_in_flight_per_peer = 10;
  Create();
  MessageHeader reply;
  reply.type = MessageType::kPingReply;
  auto body = [](size_t size) {
    std::vector<BufferLease> pieces;
    pieces.push_back(BufferLease::Owning(std::vector<std::byte>(size)));
    return pieces;
  };
  ASSERT_TRUE(table_->Reply(peer_, reply, body(8)).ok());

  EXPECT_EQ(table_->Reply(peer_, reply, body(8)).code(),
            absl::StatusCode::kResourceExhausted);

  const auto posted = table_->TakeQueued();
  ASSERT_THAT(posted, SizeIs(2));
  EXPECT_EQ(DecodeHeader(*posted[1].header)->code,
            absl::StatusCode::kResourceExhausted);
}

// Silence would cost the requester its whole deadline.
TEST_F(OperationTableTest, WhenAllSlotsAreUsedARefusalStillGoesOut) {
  options_.max_operations = 1;
  Create();
  MessageHeader reply;
  reply.type = MessageType::kFetchReply;
  auto body = [] {
    std::vector<BufferLease> pieces;
    pieces.push_back(BufferLease::Owning(std::vector<std::byte>(8)));
    return pieces;
  };
  ASSERT_TRUE(table_->Reply(peer_, reply, body()).ok());

  EXPECT_EQ(table_->Reply(peer_, reply, body()).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Submit().code(), absl::StatusCode::kResourceExhausted);

  const auto posted = table_->TakeQueued();
  ASSERT_THAT(posted, SizeIs(2));
  EXPECT_EQ(DecodeHeader(*posted[1].header)->code,
            absl::StatusCode::kResourceExhausted);
}

// One that reads nothing must not refuse the replies of those that do.
TEST_F(OperationTableTest, APeersRepliesTakeNoMoreThanItsShareOfTheSlots) {
  options_.max_operations = 32;
  options_.fair_operations = 8;
  Create();
  MessageHeader reply;
  reply.type = MessageType::kFetchReply;
  const auto taken = [&](PeerId peer) {
    int count = 0;
    for (;; ++count) {
      std::vector<BufferLease> body;
      body.push_back(BufferLease::Owning(std::vector<std::byte>(8)));
      if (!table_->Reply(peer, reply, std::move(body)).ok()) return count;
      if (count > 32) return count;
    }
  };
  EXPECT_EQ(taken(peer_), 8);  // alone it may have all that are first come
  for (const int share : {4, 2, 2, 1}) {
    EXPECT_EQ(taken(table_->AddPeer("another").value()), share);
  }

  EXPECT_EQ(taken(peer_), 0);
  for (const auto& sent : table_->TakeQueued()) {
    table_->SendFinal(sent.slot, absl::OkStatus());
  }
  EXPECT_EQ(taken(peer_), 8);  // the others have none any more
}

// After a stall those that are there come first.
TEST_F(OperationTableTest, RequestsOfAPeerThatHasGoneHaveNoTurn) {
  std::vector<std::pair<PeerId, absl::Duration>> served;
  const absl::Time start = clock_.Now();
  options_.on_request = [&](Incoming incoming) {
    served.emplace_back(incoming.peer, incoming.arrived - start);
  };
  Create();
  const PeerId another = table_->AddPeer("another").value();
  for (const PeerId peer : {peer_, another, peer_}) {
    Message request;
    ASSERT_TRUE(table_->Admit(peer, request.header));
    table_->Deliver(peer, std::move(request));
    clock_.Advance(absl::Seconds(1));
  }

  table_->FailPeer(peer_, absl::UnavailableError("gone"), true);
  executor_.RunAll();

  EXPECT_THAT(served, ElementsAre(std::pair(another, absl::Seconds(1))));
  EXPECT_EQ(table_->counters().requests_received, 1u);
  EXPECT_EQ(table_->counters().dropped_messages, 2u);
  EXPECT_THAT(events_, ElementsAre("lost"));
}

TEST_F(OperationTableTest, ShutdownCancelsWhatIsQueued) {
  Create();
  ASSERT_TRUE(Submit().ok());

  table_->BeginShutdown();
  executor_.RunAll();

  EXPECT_THAT(events_, ElementsAre("CANCELLED"));
  EXPECT_EQ(Submit().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(table_->TakeQueued(), IsEmpty());
  EXPECT_TRUE(table_->WaitIdle(absl::ZeroDuration()));
}

}  // namespace
}  // namespace farkv

#include "common/transport/faults/fault_transport.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/transport/stepped_pair.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<FaultTransport> Faulty(LoopbackNetwork& network,
                                       TransportOptions options,
                                       const std::string& spec) {
  return CreateFaultTransport(
             ParseFaultSpec(spec).value(), std::move(options),
             [&network](TransportOptions inner) {
               return network.CreateTransport(std::move(inner));
             })
      .value();
}

// The server meets the faults: they strike arriving requests.
class FaultTransportTest : public ::testing::Test {
 protected:
  void Start(const std::string& spec) {
    pair_ = std::make_unique<SteppedPair>(
        [&](LoopbackNetwork& network, TransportOptions options) {
          auto faulty = Faulty(network, std::move(options), spec);
          faults_ = faulty.get();
          return faulty;
        });
  }
  void Submit(int count) {
    for (int i = 0; i < count; ++i) pair_->Submit();
    pair_->Settle();
  }
  // The decorator's thread is real: its releases are waited for.
  bool SettleUntil(size_t num_requests) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (pair_->requests.size() < num_requests && absl::Now() < end) {
      pair_->Settle();
    }
    return pair_->requests.size() == num_requests;
  }
  bool Intact(const Incoming& incoming) {
    return CheckMessage(incoming.message.header_bytes,
                        incoming.message.body.bytes())
        .ok();
  }

  std::unique_ptr<SteppedPair> pair_;
  FaultTransport* faults_ = nullptr;
};

TEST_F(FaultTransportTest, WithoutFaultsEverythingArrives) {
  Start("");

  Submit(20);

  EXPECT_THAT(pair_->requests, SizeIs(20));
  for (const Incoming& incoming : pair_->requests) {
    EXPECT_TRUE(Intact(incoming));
  }
}

TEST_F(FaultTransportTest, ADroppedRequestNeverArrives) {
  Start("drop=1");

  Submit(5);

  EXPECT_THAT(pair_->requests, IsEmpty());
  EXPECT_EQ(faults_->injected().dropped, 5u);
}

TEST_F(FaultTransportTest, AFlippedBitIsNoticedByTheChecksum) {
  Start("flip=1");

  Submit(20);

  ASSERT_THAT(pair_->requests, SizeIs(20));
  for (const Incoming& incoming : pair_->requests) {
    EXPECT_FALSE(Intact(incoming));
  }
  EXPECT_EQ(faults_->injected().flipped, 20u);
}

TEST_F(FaultTransportTest, ATruncatedBodyIsNoticedByTheChecksum) {
  Start("truncate=1");

  Submit(5);

  ASSERT_THAT(pair_->requests, SizeIs(5));
  for (const Incoming& incoming : pair_->requests) {
    EXPECT_LT(incoming.message.body.size(), pair_->storage.size());
    EXPECT_FALSE(Intact(incoming));
  }
}

TEST_F(FaultTransportTest, ADuplicateArrivesTwiceAndIntact) {
  Start("duplicate=1");

  Submit(1);

  ASSERT_THAT(pair_->requests, SizeIs(2));
  EXPECT_EQ(pair_->requests[0].message.header,
            pair_->requests[1].message.header);
  EXPECT_TRUE(Intact(pair_->requests[0]));
  EXPECT_TRUE(Intact(pair_->requests[1]));
}

TEST_F(FaultTransportTest, ADelayedRequestArrivesWhenItsTimeHasCome) {
  Start("delay=1:5ms");
  Submit(1);
  EXPECT_THAT(pair_->requests, IsEmpty());

  pair_->clock.Advance(absl::Milliseconds(5));

  EXPECT_TRUE(SettleUntil(1));
  EXPECT_EQ(faults_->injected().delayed, 1u);
}

TEST_F(FaultTransportTest, AStallHoldsEverythingThatFollows) {
  Start("seed=3,stall=0.2:5ms");
  while (faults_->injected().stalled == 0) Submit(1);
  const size_t arrived = pair_->requests.size();
  Submit(3);
  EXPECT_THAT(pair_->requests, SizeIs(arrived));

  pair_->clock.Advance(absl::Milliseconds(5));

  EXPECT_TRUE(SettleUntil(arrived + 4));
}

TEST_F(FaultTransportTest, TheNextMessageOvertakesAReorderedOne) {
  Start("seed=5,reorder=0.3");
  while (faults_->injected().reordered == 0) Submit(1);
  const size_t before = pair_->requests.size();

  while (pair_->requests.size() == before) Submit(1);
  pair_->Settle();

  const size_t arrived = pair_->requests.size();
  ASSERT_GE(arrived, before + 2);
  EXPECT_GT(pair_->requests[before].message.header.request_id & 0xffff,
            pair_->requests[before + 1].message.header.request_id & 0xffff);
}

TEST_F(FaultTransportTest, TheSameSeedStrikesTheSameMessages) {
  std::vector<std::vector<uint64_t>> runs;
  for (int run = 0; run < 2; ++run) {
    Start("seed=11,drop=0.5");
    Submit(40);
    std::vector<uint64_t> ids;
    for (const Incoming& incoming : pair_->requests) {
      ids.push_back(incoming.message.header.request_id);
    }
    runs.push_back(ids);
    pair_.reset();
  }

  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GT(runs[0].size(), 5u);
  EXPECT_LT(runs[0].size(), 35u);
}

TEST_F(FaultTransportTest, EachNthOperationFailsUnsent) {
  SteppedPair pair;
  auto client = Faulty(pair.network, pair.Options(), "fail-nth=3");
  const PeerId peer = client->Connect("loopback", pair.port).value();
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < 6; ++i) {
    Request request;
    request.timeout = absl::Seconds(1);
    ASSERT_TRUE(client
                    ->Submit(peer, std::move(request),
                             [&codes](absl::StatusOr<Message> reply) {
                               codes.push_back(reply.status().code());
                             })
                    .ok());
  }

  pair.Settle();

  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kUnavailable,
                                 absl::StatusCode::kUnavailable));
  EXPECT_THAT(pair.requests, SizeIs(4));
  client.reset();
  pair.Settle();
  EXPECT_THAT(codes, SizeIs(6));
}

TEST_F(FaultTransportTest, ADroppedReplyEndsAtTheDeadline) {
  SteppedPair pair;
  auto client = Faulty(pair.network, pair.Options(), "drop=1");
  const PeerId peer = client->Connect("loopback", pair.port).value();
  std::vector<absl::StatusCode> codes;
  Request request;
  request.header.type = MessageType::kFetchRequest;
  request.timeout = absl::Milliseconds(5);
  ASSERT_TRUE(client
                  ->Submit(peer, std::move(request),
                           [&codes](absl::StatusOr<Message> reply) {
                             codes.push_back(reply.status().code());
                           })
                  .ok());
  pair.Settle();
  pair.Reply(pair.requests.at(0));
  pair.Settle();
  EXPECT_THAT(codes, IsEmpty());

  pair.clock.Advance(absl::Milliseconds(5));
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (codes.empty() && absl::Now() < end) pair.Settle();

  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(client->counters().submitted, client->counters().completed);
}

}  // namespace
}  // namespace farkv

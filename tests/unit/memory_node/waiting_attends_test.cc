// Attends that wait their turn.
#include "tests/unit/memory_node/data_plane_fixture.h"

namespace farkv {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(DataPlaneTest, APingDoesNotWaitBehindAnAttend) {
  SteppingExecutor attends;
  data_plane_.AttendOn(&attends);
  ASSERT_TRUE(Hello().ok());
  bool attended = false;
  Request request;
  request.header.type = MessageType::kAttendRequest;
  request.header.session = TestSession(1);
  request.header.epoch = epoch_;
  request.timeout = absl::Seconds(1);
  ASSERT_TRUE(
      worker_
          ->Submit(peer_, std::move(request),
                   [&](const absl::StatusOr<Message>&) { attended = true; })
          .ok());
  RunAll();
  EXPECT_TRUE(Call(MessageType::kPingRequest, {}).ok());
  EXPECT_FALSE(attended);

  EXPECT_EQ(attends.RunAll(), 1);
  RunAll();
  EXPECT_TRUE(attended);
}

// Attends that a test lets wait.
class WaitingAttendsTest : public DataPlaneTest {
 protected:
  WaitingAttendsTest() {
    data_plane_.AttendOn(&attends_);
    OpenSessionCall call = OpenCall();
    call.data_timeout = absl::Seconds(3);
    grant_ = directory_.Open(call).value();
  }
  ~WaitingAttendsTest() override {
    attends_.RunAll();
    RunAll();
  }

  void Attend() {
    Request request;
    request.header.type = MessageType::kAttendRequest;
    request.header.session = TestSession(1);
    request.header.epoch = epoch_;
    request.timeout = absl::Seconds(3);
    ASSERT_TRUE(worker_
                    ->Submit(peer_, std::move(request),
                             [&](const absl::StatusOr<Message>& reply) {
                               results_.push_back(reply.status().code());
                             })
                    .ok());
    RunAll();
  }

  SteppingExecutor attends_;
  std::vector<absl::StatusCode> results_;
};

// An empty request, so that INVALID_ARGUMENT means that it had its turn.
TEST_F(WaitingAttendsTest, AnAttendWhoseCallerHasGivenUpIsNotComputed) {
  ASSERT_TRUE(Hello().ok());
  Attend();
  clock_.Advance(absl::Seconds(2));
  Attend();
  clock_.Advance(absl::Seconds(1));
  RunAll();
  EXPECT_THAT(results_, ElementsAre(absl::StatusCode::kDeadlineExceeded));

  EXPECT_EQ(attends_.RunAll(), 2);
  RunAll();

  EXPECT_THAT(results_, ElementsAre(absl::StatusCode::kDeadlineExceeded,
                                    absl::StatusCode::kInvalidArgument));
  for (const char* line :
       {"farkv_node_attend_requests_total 1",
        "farkv_node_attend_failures_total{reason=\"DEADLINE_EXCEEDED\"} 1",
        "farkv_node_attend_failures_total{reason=\"INVALID_ARGUMENT\"} 1"}) {
    EXPECT_EQ(Metric(line), line);
  }
}

// After a stall of the node: all that came in meanwhile is in the queue.
TEST_F(WaitingAttendsTest, NoMessageIsWorkedOnWhoseCallerHasGivenUp) {
  Other& other = AddOther();
  Post(other, MessageType::kHelloRequest, ToBytes(grant_.token));
  RunAll();
  other.codes->clear();
  const auto post_all = [&] {
    for (const MessageType type :
         {MessageType::kStoreRequest, MessageType::kFetchRequest,
          MessageType::kScoresRequest, MessageType::kPingRequest}) {
      Post(other, type, {});
    }
    network_.Step();
  };
  post_all();
  clock_.Advance(absl::Seconds(2));
  post_all();
  clock_.Advance(absl::Seconds(1));

  executor_.RunAll();

  for (const char* of : {"store", "fetch", "attend"}) {
    for (const char* line :
         {"_requests_total 1",
          "_failures_total{reason=\"DEADLINE_EXCEEDED\"} 1",
          "_failures_total{reason=\"INVALID_ARGUMENT\"} 1"}) {
      const std::string whole = absl::StrCat("farkv_node_", of, line);
      EXPECT_EQ(Metric(whole), whole);
    }
  }
  EXPECT_EQ(Metric("farkv_node_answered_requests_total 9"),
            "farkv_node_answered_requests_total 9");
}

TEST_F(WaitingAttendsTest, NoMoreAttendsWaitThanTheBound) {
  ASSERT_TRUE(Hello().ok());
  for (int i = 0; i < 4; ++i) Attend();

  EXPECT_THAT(results_, ElementsAre(absl::StatusCode::kResourceExhausted,
                                    absl::StatusCode::kResourceExhausted));
  data_plane_.ShowGauges();
  EXPECT_EQ(Metric("farkv_node_waiting_attends 2"),
            "farkv_node_waiting_attends 2");

  EXPECT_EQ(attends_.RunAll(), 2);
  RunAll();
  Attend();
  EXPECT_EQ(results_.size(), 4u);  // there is room again
  data_plane_.ShowGauges();
  EXPECT_EQ(Metric("farkv_node_waiting_attends 1"),
            "farkv_node_waiting_attends 1");
}

// Strangers may ask as often as they like: nothing that has a bound is theirs.
TEST_F(WaitingAttendsTest, AttendsOfPeersWithoutAHelloTakeNoPlace) {
  const Other& stranger = AddOther();
  for (int i = 0; i < 5; ++i) {
    Post(stranger, MessageType::kAttendRequest, {});
  }
  RunAll();
  EXPECT_EQ(stranger.codes->size(), 5u);
  EXPECT_THAT(*stranger.codes, Each(absl::StatusCode::kPermissionDenied));

  ASSERT_TRUE(Hello().ok());
  Attend();
  Attend();

  EXPECT_THAT(results_, IsEmpty());  // both wait their turn
  EXPECT_EQ(attends_.RunAll(), 2);
}

TEST_F(WaitingAttendsTest, OnePeersAttendsLeaveAPlaceToEachOther) {
  const Other& many = AddProvenOther(2);
  for (int i = 0; i < 9; ++i) {
    Post(many, MessageType::kAttendRequest, {});
  }
  RunAll();
  EXPECT_EQ(many.codes->size(), 7u);
  EXPECT_THAT(*many.codes, Each(absl::StatusCode::kResourceExhausted));
  ASSERT_TRUE(Hello().ok());

  Attend();
  Post(many, MessageType::kAttendRequest, {});
  RunAll();

  EXPECT_THAT(results_, IsEmpty());
  EXPECT_EQ(many.codes->size(), 8u);
  EXPECT_EQ(attends_.RunAll(), 3);
}

}  // namespace
}  // namespace farkv

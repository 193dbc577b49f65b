// Whom a link to a node takes up, and what it does when the node falls silent.
#include "gpu_worker/tiering/node_link.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"
#include "common/mapping/map_socket.h"
#include "common/mapping/memfd_slab.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node_link_fixture.h"
#include "tests/unit/mapping/temp_dir.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(NodeLinkTest, ADamagedAnswerToTheHelloIsCountedAndAskedForAgain) {
  damaged_hellos_ = 1;

  ASSERT_TRUE(Connect([](ControlCalls&) {}).ok());

  EXPECT_EQ(link_->Stats().damaged_answers, 1u);
}

TEST_F(NodeLinkTest, ANodeWhoseAnswersToTheHelloAreDamagedIsNotConnected) {
  damaged_hellos_ = 2;

  const absl::Status status = Connect([](ControlCalls&) {});

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory node 0"));
}

TEST_F(NodeLinkTest, ASilentNodeIsLostUntilItAnswersAgain) {
  tiering_.heartbeat = absl::Milliseconds(100);
  ASSERT_TRUE(Connect([](ControlCalls&) {}).ok());
  const auto becomes = [this](bool healthy) {
    const absl::Time end = absl::Now() + kLong;
    while (absl::Now() < end) {
      if (link_->healthy() == healthy) return true;
    }
    return false;
  };

  network_.SetFrozen(node_.port(), true);
  EXPECT_TRUE(becomes(false));
  network_.SetFrozen(node_.port(), false);
  EXPECT_TRUE(becomes(true));
}

// The node freezes between its grant and the hello.
TEST_F(NodeLinkTest, AHelloToAFrozenNodeEndsByItsDeadlineAndNamesTheNode) {
  transport_clock_ = &time_;
  std::atomic<bool> frozen{false}, over{false};
  std::thread passing([&] {
    while (!frozen) std::this_thread::yield();
    while (!over) {
      time_.Advance(absl::Seconds(11));
      network_.HoldSends(false);  // looks at its deadlines again
    }
  });

  const absl::Status status = Connect([&](ControlCalls& control) {
    control.open_session = [&, open = control.open_session](
                               const OpenSessionCall& call,
                               absl::Duration timeout) {
      absl::StatusOr<SessionGrant> grant = open(call, timeout);
      network_.SetFrozen(node_.port(), true);
      frozen = true;
      return grant;
    };
  });
  over = true;
  passing.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("memory node 0 (node)"),
                    HasSubstr(absl::StrCat("localhost:", node_.port()))));
  EXPECT_FALSE(node_.has_sessions());
  network_.SetFrozen(node_.port(), false);
}

// The hello of a reconnection meets a frozen node; the one after it does not.
TEST_F(NodeLinkTest, ALinkComesBackAfterAHelloToAFrozenNode) {
  tiering_.heartbeat = absl::Milliseconds(100);
  tiering_.rpc_timeout = absl::Milliseconds(200);
  std::atomic<int> opened{0};
  ASSERT_TRUE(Connect([&](ControlCalls& control) {
                control.open_session = [&, open = control.open_session](
                                           const OpenSessionCall& call,
                                           absl::Duration timeout) {
                  absl::StatusOr<SessionGrant> grant = open(call, timeout);
                  if (grant.ok()) {
                    network_.SetFrozen(node_.port(), ++opened == 2);
                  }
                  return grant;
                };
              }).ok());

  node_.SetDown(true);  // its connections end
  node_.SetDown(false);

  const absl::Time end = absl::Now() + kLong;
  while (!(opened >= 3 && link_->healthy()) && absl::Now() < end) {
    std::this_thread::yield();
  }
  EXPECT_GE(opened, 3);
  EXPECT_TRUE(link_->healthy());
}

TEST_F(NodeLinkTest, AnErrorBeforeTheHelloNamesTheNodeToo) {
  max_peers_ = 0;

  const absl::Status status = Connect([](ControlCalls&) {});

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("memory node 0 (node)"),
                    HasSubstr(absl::StrCat("localhost:", node_.port()))));
}

TEST_F(NodeLinkTest, LeasesTooShortForTheHeartbeatAreRefusedWithBoth) {
  tiering_.lease = absl::Hours(1);
  tiering_.heartbeat = absl::Minutes(20);

  const absl::Status status = Connect([](ControlCalls& control) {
    control.open_session = [open = control.open_session](
                               const OpenSessionCall& call,
                               absl::Duration timeout) {
      auto grant = open(call, timeout);
      grant->lease = absl::Seconds(30);
      return grant;
    };
  });

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("30s"), HasSubstr("20m")));
  EXPECT_FALSE(node_.has_sessions());  // the own one is not left behind
}

TEST_F(NodeLinkTest, ANodeOfAnotherProtocolFormatOrTargetIsRefusedWithBoth) {
  using Edit = void (*)(SessionGrant&);
  const std::pair<const char*, Edit> edits[] = {
      {"protocol version is 77",
       [](SessionGrant& grant) { grant.handshake.protocol_version = 77; }},
      {"page format version is 78",
       [](SessionGrant& grant) { grant.handshake.page_format_version = 78; }},
      {"page stride is 4096",
       [](SessionGrant& grant) { grant.page_stride = 4096; }},
      {"(--exactness=bitwise) is Z80",
       [](SessionGrant& grant) { grant.handshake.kernel_target = "Z80"; }}};
  for (const auto& [message, edit] : edits) {
    const absl::Status status = Connect([edit = edit](ControlCalls& control) {
      control.open_session = [open = control.open_session, edit](
                                 const OpenSessionCall& call,
                                 absl::Duration timeout) {
        auto grant = open(call, timeout);
        edit(*grant);
        return grant;
      };
    });

    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_FALSE(node_.has_sessions());
  }
}

TEST_F(NodeLinkTest, AMapSocketThatIsNoPlainNameIsRefused) {
  tiering_.map_dir = "/nowhere";
  tiering_.cold = ColdMode::kAuto;
  for (const char* name : {"../other/node.sock", "/tmp/node.sock", "..", "."}) {
    const absl::Status status = Connect([name](ControlCalls& control) {
      auto open = control.open_session;
      control.open_session = [open, name](const OpenSessionCall& call,
                                          absl::Duration timeout) {
        auto grant = open(call, timeout);
        grant->map_socket = name;
        return grant;
      };
    });

    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_FALSE(node_.has_sessions());
  }
}

// A link to a node whose map socket is a server of the test.
class MappingLinkTest : public NodeLinkTest {
 protected:
  ~MappingLinkTest() override {
    if (link_ != nullptr) link_->Stop();
  }

  void StartMap(MapHandler handler) {
    MapServerOptions options;
    options.map_dir = dir_.path();
    options.node_id = "map";
    map_ = MapServer::Start(options, std::move(handler)).value();
    tiering_.map_dir = dir_.path();
    tiering_.cold = ColdMode::kAuto;
    tiering_.heartbeat = absl::Seconds(10);
  }

  // Every second page lies in a slab of its own. `on_ticket` runs when the
  // link asks for something to map a slab with.
  absl::Status ConnectMapped(std::function<void()> on_ticket = [] {}) {
    return Connect([this, on_ticket](ControlCalls& control) {
      control.open_session = [this, on_ticket, open = control.open_session](
                                 const OpenSessionCall& call,
                                 absl::Duration timeout) {
        if (own_ == SessionId()) own_ = call.session;
        if (call.session == own_ && tickets_++ > 0) on_ticket();
        auto grant = open(call, timeout);
        grant->map_socket = "map.sock";
        return grant;
      };
      control.apply_tier_plan = [apply = control.apply_tier_plan](
                                    const TierPlanCall& call,
                                    absl::Duration timeout) {
        auto result = apply(call, timeout);
        for (size_t i = 0; i < result->reserved.size(); ++i) {
          result->reserved[i].slab_id = static_cast<uint32_t>(i / 2);
        }
        return result;
      };
    });
  }

  PagesReserved Reserve(const std::shared_ptr<RemoteSession>& session,
                        int page_index) {
    std::vector<PageName> pages;
    for (int i = 0; i < 64; ++i) pages.push_back({i % 3, page_index + i / 3});
    link_->Reserve(SequenceId{1}, session, std::move(pages));
    return Next<PagesReserved>();
  }

  static int NumMapped(const PagesReserved& reserved) {
    return static_cast<int>(
        std::count_if(reserved.maps.begin(), reserved.maps.end(),
                      [](const MappedPage& p) { return p.data != nullptr; }));
  }

  int tickets() const { return tickets_ - 1; }  // the first one connected

  testing::TempDir dir_;
  std::unique_ptr<MapServer> map_;
  // The link's thread, read when it has answered.
  SessionId own_;
  int tickets_ = 0;
};

TEST_F(MappingLinkTest, AMapSocketThatDoesNotAnswerIsTriedOnceForAPlan) {
  absl::Notification answer;
  // The server's thread must be out of `answer` before that goes.
  const absl::Cleanup unblock = [this, &answer] {
    answer.Notify();
    map_ = nullptr;
  };
  StartMap([&](const MapRequest&,
               const PeerCredentials&) -> absl::StatusOr<MapGrant> {
    answer.WaitForNotification();
    return absl::UnavailableError("too late");
  });
  tiering_.rpc_timeout = absl::Seconds(1);
  ASSERT_TRUE(ConnectMapped().ok());
  const auto session = OpenSession();

  for (const int first_page : {0, 100}) {
    const PagesReserved reserved = Reserve(session, first_page);
    ASSERT_TRUE(reserved.placements.ok()) << reserved.placements.status();
    EXPECT_THAT(*reserved.placements, SizeIs(64));
    EXPECT_EQ(NumMapped(reserved), 0);
    // Soon after a failure the second plan does not try at all.
    EXPECT_EQ(tickets(), 1);
  }
}

TEST_F(MappingLinkTest, ALinkThatStopsMapsNoFurtherSlab) {
  MemfdSlabOptions options;
  options.size_bytes = size_t{4} << 20;
  options.huge_pages = false;
  const MemfdSlab slab = MemfdSlab::Create(options).value();
  StartMap([&slab](const MapRequest&,
                   const PeerCredentials&) -> absl::StatusOr<MapGrant> {
    return MapGrant{slab.DuplicateFd().value(), slab.size_bytes()};
  });
  // A slab has a sixth of a lease to be mapped.
  tiering_.lease = absl::Minutes(6);
  tiering_.rpc_timeout = absl::Minutes(2);
  ASSERT_TRUE(ConnectMapped([this] {
                if (tickets() == 3) link_->BeginStop();
              }).ok());

  const PagesReserved reserved = Reserve(OpenSession(), 0);

  ASSERT_TRUE(reserved.placements.ok());
  EXPECT_THAT(reserved.maps, SizeIs(64));
  EXPECT_EQ(tickets(), 3);
  EXPECT_EQ(NumMapped(reserved), 2 * 2 + 1);
}

}  // namespace
}  // namespace farkv

#include "memory_node/service/node_events.h"

#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

class NodeEventsTest : public DirectoryFixture {
 protected:
  NodeEvents events_{directory_, pool_};
};

TEST_F(NodeEventsTest, OnlyChangesArePublished) {
  std::vector<NodeState> seen;
  events_.Subscribe(
      [&seen](const NodeState& state, const std::vector<RevokedSession>&) {
        seen.push_back(state);
      });

  events_.Refresh();
  Open();
  events_.Refresh();
  events_.Refresh();
  directory_.SetDraining(true);
  events_.Refresh();

  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].sessions, 0u);  // as it was when it subscribed
  EXPECT_EQ(seen[1].sessions, 1u);
  EXPECT_FALSE(seen[1].draining);
  EXPECT_TRUE(seen[2].draining);
}

TEST_F(NodeEventsTest, TheLastStateThatIsPublishedIsTheNewest) {
  // Whoever is told first of the session changes the state under the other.
  std::vector<NodeState> seen[2];
  for (auto& list : seen) {
    events_.Subscribe([this, &list](const NodeState& state,
                                    const std::vector<RevokedSession>&) {
      list.push_back(state);
      if (state.sessions == 1) directory_.SetDraining(true);
      events_.Refresh();
    });
  }

  Open();
  events_.Refresh();

  for (const auto& list : seen) {
    EXPECT_EQ(list.back(), events_.state());
    EXPECT_TRUE(list.back().draining);
  }
}

TEST_F(NodeEventsTest, RevokedSessionsReachSubscribersUntilTheyLeave) {
  size_t revoked = 0;
  const uint64_t id = events_.Subscribe(
      [&revoked](const NodeState&, const std::vector<RevokedSession>& lost) {
        revoked += lost.size();
      });

  events_.Refresh({{TestSession(1), "tenant"}});
  events_.Unsubscribe(id);
  events_.Refresh({{TestSession(2), "tenant"}});

  EXPECT_EQ(revoked, 1u);
}

TEST_F(NodeEventsTest, AFullPoolIsReportedAsPressure) {
  Open();
  std::vector<PageName> pages;
  for (int32_t i = 0; i < static_cast<int32_t>(kPages); ++i) {
    pages.push_back({0, i});
  }
  EXPECT_FALSE(events_.state().pressure);

  directory_.Apply(Plan(1, pages)).value();

  EXPECT_TRUE(events_.state().pressure);
}

}  // namespace
}  // namespace farkv

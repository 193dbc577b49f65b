#include "gpu_worker/service/decision_log_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/session_handle.h"

namespace farkv {
namespace {

using admin::v1::ListEvictionsRequest;
using admin::v1::ListEvictionsResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LoggedEviction EventOf(const SessionId& session, int64_t number) {
  LoggedEviction event;
  event.time = absl::UnixEpoch();
  event.session = session;
  event.request_id = "request";
  event.candidates = 300;
  event.kept = 128;
  event.layers_by_nodes = 2;
  event.record = {.event = number,
                  .num_tokens = 256,
                  .policy = "vase-dkv",
                  .num_kept = 64,
                  .destroyed_rows = 172,
                  .kept_digests = {1, 2}};
  return event;
}

SessionId SessionOf(char first) {
  return SessionId::FromBytes(std::string(16, first)).value();
}

class ListDecisionsTest : public ::testing::Test {
 protected:
  ListDecisionsTest() {
    for (int i = 0; i < 5; ++i) {
      log_.Add(EventOf(SessionOf(i % 2 == 0 ? 'a' : 'b'), i));
    }
  }

  absl::StatusOr<ListEvictionsResponse> List(
      const ListEvictionsRequest& request) const {
    return ListDecisions(
        request,
        [this](const DecisionQuery& query) { return log_.List(query); },
        absl::UnixEpoch() + absl::Seconds(3));
  }

  static std::vector<uint64_t> Ids(const ListEvictionsResponse& response) {
    std::vector<uint64_t> ids;
    for (const auto& decision : response.decisions()) {
      ids.push_back(decision.decision_id());
    }
    return ids;
  }

  DecisionLog log_;
};

TEST_F(ListDecisionsTest, AnEventIsToldInWhole) {
  const auto response = List({});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(Ids(*response), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_EQ(response->next_page_token(), "");
  const auto& decision = response->decisions(0);
  EXPECT_EQ(decision.session_id(), SessionHandleBytes(SessionOf('a')));
  EXPECT_EQ(decision.policy(), "vase-dkv");
  EXPECT_EQ(decision.event(), 4u);
  EXPECT_EQ(decision.heads(), 2);
  EXPECT_EQ(decision.candidates(), 300);
  EXPECT_EQ(decision.kept(), 128);
  EXPECT_EQ(decision.budget_tokens(), 64);
  EXPECT_EQ(decision.num_tokens(), 256);
  EXPECT_EQ(decision.destroyed_rows(), 172);
  EXPECT_EQ(decision.layers_by_nodes(), 2);
  EXPECT_EQ(decision.request_id(), "request");
  EXPECT_EQ(decision.age().seconds(), 3);
  EXPECT_TRUE(decision.final_list());
  EXPECT_FALSE(decision.can_be_replayed());
  EXPECT_NE(decision.digest(), 0u);
}

TEST_F(ListDecisionsTest, PagesFollowOneAnother) {
  ListEvictionsRequest request;
  request.set_page_size(2);
  std::vector<std::vector<uint64_t>> pages;
  do {
    const auto response = List(request);
    ASSERT_TRUE(response.ok()) << response.status();
    pages.push_back(Ids(*response));
    request.set_page_token(response->next_page_token());
  } while (!request.page_token().empty());

  EXPECT_THAT(
      pages, ElementsAre(ElementsAre(5, 4), ElementsAre(3, 2), ElementsAre(1)));
}

TEST_F(ListDecisionsTest, OneSessionsEventsCanBeAskedFor) {
  ListEvictionsRequest request;
  request.set_session_id(SessionHandleBytes(SessionOf('b')));

  EXPECT_THAT(Ids(List(request).value()), ElementsAre(4, 2));
  request.set_page_size(kMaxDecisionsShown + 1);
  EXPECT_THAT(std::string(List(request).status().message()),
              HasSubstr("page_size is 257"));
}

TEST_F(ListDecisionsTest, TheOldestGoFirst) {
  for (size_t i = 0; i < kMaxEvictionRecords; ++i) {
    log_.Add(EventOf(SessionOf('c'), 0));
  }

  const auto all =
      log_.List({.count = 2 * kMaxEvictionRecords, .sessions = {}});

  ASSERT_EQ(all.size(), kMaxEvictionRecords);
  EXPECT_EQ(all.back().id, 6u);
}

}  // namespace
}  // namespace farkv

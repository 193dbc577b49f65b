#include "memory_node/service/page_list_codec.h"

#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using namespace admin::v1;  // NOLINT: the messages of the admin service

std::string Refusal(const ListPagesRequest& request) {
  const absl::Status status = ReadQuery(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(PageListCodecTest, WhatIsWrongInAQueryIsNamed) {
  ListPagesRequest size, token, session, tier, state;
  size.set_page_size(1001);
  token.set_page_token("7");
  session.set_session_id("abc");
  tier.set_tier(static_cast<types::v1::Tier>(9));
  state.set_state(static_cast<PageState>(9));

  EXPECT_THAT(Refusal(size), HasSubstr("page_size"));
  EXPECT_THAT(Refusal(token), HasSubstr("page_token"));
  EXPECT_THAT(Refusal(session), HasSubstr("3"));
  EXPECT_THAT(Refusal(tier), HasSubstr("9"));
  EXPECT_THAT(Refusal(state), HasSubstr("9"));
}

TEST(PageListCodecTest, WithoutASizeAnAnswerHasAsManyAsItMay) {
  EXPECT_EQ(ReadQuery({}).value().count, 1000u);
}

HeldPage APage(uint64_t generation) {
  HeldPage page;
  page.state = HeldState::kStored;
  page.session = TestSession(1);
  page.tenant = "tenant";
  page.worker_id = "worker";
  page.instance = 5;
  page.page = {2, 7};
  page.generation = Generation{generation};
  page.live_rows = 100;
  page.held_for = absl::Seconds(4);
  page.mapped = true;
  return page;
}

TEST(PageListCodecTest, APageInQuarantineHasNoPlaceAndNoWorker) {
  HeldPage gone = APage(11);
  gone.state = HeldState::kQuarantined;
  const ListPagesResponse proto = ToProto({APage(10), gone}, 2);

  EXPECT_EQ(proto.pages(0).layer(), 2);
  EXPECT_EQ(proto.pages(0).page_index(), 7);
  EXPECT_EQ(proto.pages(0).session_id(), std::string(4, 1));
  EXPECT_EQ(proto.pages(0).held_for().seconds(), 4);
  EXPECT_TRUE(proto.pages(0).mapped());
  EXPECT_FALSE(proto.pages(1).has_layer());
  EXPECT_EQ(proto.pages(1).worker_id(), "");
  EXPECT_EQ(proto.next_page_token(), "");
}

TEST(PageListCodecTest, OneMoreThanAskedForIsTheWayToTheNextPart) {
  const ListPagesResponse proto = ToProto({APage(10), APage(11)}, 1);

  ASSERT_EQ(proto.pages_size(), 1);
  ListPagesRequest next;
  next.set_page_token(proto.next_page_token());
  const PageQuery query = ReadQuery(next).value();
  EXPECT_EQ(query.after_instance, 5u);
  EXPECT_EQ(query.after_generation, 10u);
}

// 100,000 pages of the longest names there are.
TEST(PageListCodecTest, AnAnswerStaysBelowHalfAMegabyte) {
  HeldPage page = APage(~0ull);
  page.tenant = page.worker_id = std::string(128, 't');
  const std::vector<HeldPage> pages(kMaxListedPages + 1, page);

  EXPECT_LT(ToProto(pages, kMaxListedPages).ByteSizeLong(), 512u << 10);
}

}  // namespace
}  // namespace farkv

// What a node refuses to decide, and how it says so.
#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/ascii.h"
#include "tests/unit/memory_node/deciding_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

EvictionCall GoodCall(const DestructionPolicy& policy = VaseDkvPolicy{}) {
  EvictionCall call;
  call.session = TestSession(1);
  call.epoch = Epoch{77};
  call.policy = policy;
  call.num_kept = 3;
  call.num_tokens = 200;
  call.heads = {{.layer = kDecidedLayer,
                 .kv_head = 0,
                 .positions = {4, 5, 70},
                 .mass = {1, 2, 3},
                 .always_kept = {199}}};
  return call;
}

struct BadCall {
  const char* what;
  std::function<void(EvictionCall&)> spoil;
  absl::StatusCode code;
  const char* message;
};

// gtest would print the bytes.
std::ostream& operator<<(std::ostream& out, const BadCall& bad) {
  return out << bad.what;
}

EvictionHead Large(int32_t kv_head, int64_t rows) {
  EvictionHead head{.layer = kDecidedLayer, .kv_head = kv_head};
  for (int64_t i = 0; i < rows; ++i) head.positions.push_back(i);
  return head;
}

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kFailed = absl::StatusCode::kFailedPrecondition;

const BadCall kBadCalls[] = {
    {"unknown session", [](auto& c) { c.session = TestSession(9); }, kNotFound,
     "no session 09090909"},
    {"wrong epoch", [](auto& c) { c.epoch = Epoch{76}; }, kFailed,
     "epoch of the call is 76, this node lives in 77"},
    {"page not reserved", [](auto& c) { c.heads[0].positions[2] = 131; },
     kNotFound, "layer 1, head 0: position 131 is not stored here"},
    {"unknown layer", [](auto& c) { c.heads[0].layer = 3; }, kInvalid,
     "layer 3, head 0 of a session with 3 layers and 2 KV heads"},
    {"negative layer", [](auto& c) { c.heads[0].layer = -1; }, kInvalid,
     "layer -1, head 0"},
    {"unknown head", [](auto& c) { c.heads[0].kv_head = 2; }, kInvalid,
     "layer 1, head 2 of a session"},
    {"unknown head without rows",
     [](auto& c) { c.heads[0] = {.layer = 1, .kv_head = 5}; }, kInvalid,
     "layer 1, head 5 of a session"},
    {"no heads", [](auto& c) { c.heads.clear(); }, kInvalid, "no heads"},
    {"head twice", [](auto& c) { c.heads.push_back(c.heads[0]); }, kInvalid,
     "layer 1, head 0: is named twice"},
    {"unsorted positions", [](auto& c) { c.heads[0].positions[1] = 2; },
     kInvalid, "positions has 2 where at least 5 must follow"},
    {"same position twice", [](auto& c) { c.heads[0].positions[1] = 4; },
     kInvalid, "positions has 4 where at least 5"},
    {"negative position", [](auto& c) { c.heads[0].positions[0] = -4; },
     kInvalid, "positions has -4 where at least 0"},
    {"position of the future", [](auto& c) { c.heads[0].positions[2] = 200; },
     kInvalid, "positions has 200 but only 200 tokens were processed"},
    {"unsorted always_kept",
     [](auto& c) {
       c.heads[0].always_kept = {9, 8};
     },
     kInvalid, "always_kept has 8 where at least 10"},
    {"candidate and always kept", [](auto& c) { c.heads[0].always_kept = {5}; },
     kInvalid, "position 5 is a candidate and always kept"},
    {"mass of another length", [](auto& c) { c.heads[0].mass.pop_back(); },
     kInvalid, "2 masses for 3 candidates"},
    {"sums of another length", [](auto& c) { c.heads[0].cumulative = {1}; },
     kInvalid, "1 cumulative sums for 3 candidates"},
    {"negative budget", [](auto& c) { c.num_kept = -1; }, kInvalid,
     "budget_tokens is -1"},
    {"more pinned than the budget",
     [](auto& c) {
       c.final_list = true;
       c.num_kept = 0;
     },
     kInvalid, "layer 1, head 0: eviction: "},
    {"negative tokens", [](auto& c) { c.num_tokens = -1; }, kInvalid,
     "num_tokens is -1"},
    {"a policy out of range",
     [](auto& c) { c.policy = VaseDkvPolicy{.rank = 0}; }, kInvalid,
     "rank is 0"},
    {"no mass",
     [](auto& c) {
       c.policy = SnapKvPolicy::Vase();
       c.heads[0].mass.clear();
     },
     kInvalid, "no attention mass for 3 candidates; snap-kv-vase"},
    {"neither mass nor sums",
     [](auto& c) {
       c.policy = H2oPolicy{};
       c.heads[0].mass.clear();
     },
     kInvalid, "no attention mass for 3 candidates; h2o"},
    {"rows that cannot be merged",
     [](auto& c) { c.policy = RkvPolicy::Official(); }, kFailed,
     "rkv-official compares each row of a head with all others"},
    {"kept rows of R-KV on another party",
     [](auto& c) {
       c.policy = RkvPolicy::Official();
       c.final_list = true;
     },
     kNotFound, "position 199 is not stored here"},
    {"too many candidates",
     [](auto& c) {
       c.num_tokens = 40000;
       c.heads = {Large(0, 40000), Large(1, 30000)};
     },
     kInvalid,
     "70000 candidates and 0 rows that are always kept, at most "
     "65536"},
    {"too many rows to compare",
     [](auto& c) {
       c.policy = RkvPolicy::Mean();
       c.final_list = true;
       c.num_tokens = 9000;
       c.heads = {Large(0, 9000)};
       c.heads[0].mass.assign(9000, 1);
     },
     kInvalid,
     "9000 rows; rkv-mean compares each with all others, at most "
     "8192"},
};

class DecideErrorsTest : public ::testing::TestWithParam<BadCall> {};

TEST_P(DecideErrorsTest, IsRefusedNamingTheValuesAndNothingIsLost) {
  DecidingNode node({0, 1});
  EvictionCall call = GoodCall();
  ASSERT_TRUE(node.Decide(call).ok());
  GetParam().spoil(call);

  const auto reply = node.Decide(call);

  EXPECT_EQ(reply.status().code(), GetParam().code) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()),
              HasSubstr(GetParam().message));
  EXPECT_EQ(node.pins(), 0u);
  EXPECT_EQ(node.log().List(EvictionLog::kNewest, 10).size(), 1u);
  EXPECT_TRUE(node.Decide(GoodCall()).ok());
}

INSTANTIATE_TEST_SUITE_P(All, DecideErrorsTest, ::testing::ValuesIn(kBadCalls),
                         [](const auto& test) {
                           std::string name = test.param.what;
                           for (char& c : name) {
                             if (!absl::ascii_isalnum(
                                     static_cast<unsigned char>(c))) {
                               c = '_';
                             }
                           }
                           return name;
                         });

TEST(DecideErrorsOfPagesTest, APageOfAnotherSessionIsNotRead) {
  DecidingNode node({0});
  OpenSessionCall open;
  open.handshake = node.directory().handshake();
  open.session = TestSession(2);
  open.tenant = "tenant";
  open.geometry = kSmallGeometry;
  open.lease = absl::Seconds(5);
  ASSERT_TRUE(node.directory().Open(open).ok());
  EvictionCall call = GoodCall();
  call.session = TestSession(2);

  const auto reply = node.Decide(call);

  EXPECT_EQ(reply.status().code(), kNotFound);
  EXPECT_THAT(std::string(reply.status().message()),
              HasSubstr("position 4 is not stored here: its page is not "
                        "reserved"));
}

TEST(DecideErrorsOfPagesTest, APageThatIsReservedAndNotStoredIsNotRead) {
  DecidingNode node({0});
  TierPlanCall plan;
  plan.session = TestSession(1);
  plan.epoch = Epoch{77};
  plan.sequence_number = 2;
  plan.reserve = {{kDecidedLayer, 1}};
  ASSERT_TRUE(node.directory().Apply(plan).ok());

  const auto reply = node.Decide(GoodCall());

  EXPECT_EQ(reply.status().code(), kNotFound);
  EXPECT_THAT(std::string(reply.status().message()),
              HasSubstr("position 70 is not stored here: its page is reserved, "
                        "not stored"));
}

}  // namespace
}  // namespace farkv

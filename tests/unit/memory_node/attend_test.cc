// Pushdown on the node: subtrees of stored pages have the bits of the worker's
// own attention, and the weights come back as scores, once.
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/bf16.h"
#include "common/base/random.h"
#include "common/page/bodies.h"
#include "common/page/t2_codec.h"
#include "common/telemetry/metrics.h"
#include "kernels/attention.h"
#include "memory_node/data/attend_handler.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kQueryHeads = 4;
constexpr int kDim = 16;
constexpr float kScale = 0.25f;
constexpr int32_t kLayer = 1;

float Value(uint64_t seed, size_t i) {
  return static_cast<float>(2 * ToUnit(SplitMix64At(seed, i)) - 1);
}

// Eight heads' worth of bf16 queries.
std::vector<std::byte> Queries(uint64_t seed) {
  std::vector<std::byte> bytes(size_t{kQueryHeads} * kDim * 2);
  for (size_t i = 0; i < size_t{kQueryHeads} * kDim; ++i) {
    const uint16_t bits = FloatToBf16(4 * Value(seed, i));
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

class AttendTest : public DirectoryFixture {
 protected:
  AttendTest() { Open(); }

  // Reserves, fills and stores one page; returns its generation.
  Generation StorePage(int32_t page_index) {
    const PageName page{kLayer, page_index};
    const PagePlacement place =
        directory_.Apply(Plan(next_number_++, {page})).value().reserved[0];
    StoreTicket ticket =
        directory_.BeginStore(Caller(), page, place.generation).value();
    std::byte* rows =
        ticket.pin.data() + PageLayout::T1(kSmallGeometry).header_bytes;
    const size_t count = kSmallGeometry.BlockBytes(kPageTokens) / 2;
    for (size_t i = 0; i < count; ++i) {
      const uint16_t bits =
          FloatToBf16(Value(static_cast<uint64_t>(page_index) + 100, i));
      std::memcpy(rows + 2 * i, &bits, 2);
    }
    EXPECT_TRUE(directory_.FinishStore(std::move(ticket), AllRows()).ok());
    return place.generation;
  }

  AttendRequest Request(std::vector<AttendPage> pages) const {
    AttendRequest request;
    request.geometry = kSmallGeometry;
    request.geometry.num_layers = 0;
    request.num_query_heads = kQueryHeads;
    request.scale = kScale;
    AttendSequence sequence;
    sequence.session = TestSession(1);
    sequence.position = 1000;
    sequence.scored = true;
    sequence.pages = std::move(pages);
    sequence.queries = Queries(7);
    request.sequences.push_back(sequence);
    return request;
  }
  absl::StatusOr<std::vector<AttendSequenceReply>> Attend(
      const AttendRequest& request, uint64_t step = 1) {
    const auto reply =
        AttendPages(context_, {"tenant", Epoch{77}, kLayer, step},
                    EncodeAttendRequest(request).value());
    if (!reply.ok()) return reply.status();
    return DecodeAttendReply(*reply);
  }
  absl::StatusOr<std::vector<PageScores>> Collect(
      uint64_t collection, std::vector<ScoresRequest::Layer> layers,
      std::vector<int32_t> pages) {
    ScoresRequest request;
    request.num_query_heads = kQueryHeads;
    request.collection = collection;
    request.layers = std::move(layers);
    request.pages = std::move(pages);
    const auto reply =
        CollectScores(context_, Caller(), EncodeScoresRequest(request).value());
    if (!reply.ok()) return reply.status();
    return DecodeScoresReply(*reply);
  }

  uint64_t next_number_ = 1;
  Metrics metrics_;
  DataMetrics data_metrics_{metrics_};
  ThreadPool threads_{2};
  AttendScores scores_;
  AttendContext context_{directory_, scores_, threads_, data_metrics_};
};

// The root over the subtrees is what one party computes; its m and l are the
// globals.
struct Root {
  std::vector<float> m, l, out;
};

Root RootOf(std::vector<AttendSubtree> subtrees) {
  AttentionTree tree;
  tree.Reset(kQueryHeads, kDim, AttentionTree::Gaps::kAbsent);
  for (AttendSubtree& s : subtrees) {
    EXPECT_TRUE(
        tree.Add({static_cast<int32_t>(s.level), static_cast<int32_t>(s.index)},
                 {s.m.data(), s.l.data(), s.out.data()})
            .ok());
  }
  const PartialView root = tree.Root();
  return {{root.m, root.m + kQueryHeads},
          {root.l, root.l + kQueryHeads},
          {root.out, root.out + kQueryHeads * kDim}};
}

TEST_F(AttendTest, PagesFollowingEachOtherComeAsOneSubtree) {
  std::vector<AttendPage> pages;
  for (const int32_t page : {0, 1, 2, 3, 5}) {
    pages.push_back({page, StorePage(page), {}});
  }

  const auto replies = Attend(Request(pages));

  ASSERT_TRUE(replies.ok()) << replies.status();
  ASSERT_EQ(replies->size(), 1u);
  const AttendSequenceReply& reply = replies->front();
  EXPECT_EQ(reply.code, absl::StatusCode::kOk);
  ASSERT_EQ(reply.subtrees.size(), 2u);
  EXPECT_EQ(reply.subtrees[0].level, 2u);
  EXPECT_EQ(reply.subtrees[0].index, 0u);
  EXPECT_EQ(reply.subtrees[1].level, 0u);
  EXPECT_EQ(reply.subtrees[1].index, 5u);
}

TEST_F(AttendTest, OneRequestOrTwoGiveTheSameRoot) {
  std::vector<AttendPage> pages;
  for (int32_t page = 0; page < 5; ++page) {
    pages.push_back({page, StorePage(page), {}});
  }
  const auto whole = Attend(Request(pages));
  const auto left = Attend(Request({pages[0], pages[1], pages[4]}));
  const auto right = Attend(Request({pages[2], pages[3]}));

  ASSERT_TRUE(whole.ok() && left.ok() && right.ok());
  std::vector<AttendSubtree> parts = {left->front().subtrees[0],
                                      right->front().subtrees[0],
                                      left->front().subtrees[1]};
  const Root a = RootOf(whole->front().subtrees);
  const Root b = RootOf(parts);
  EXPECT_EQ(a.m, b.m);
  EXPECT_EQ(a.l, b.l);
  EXPECT_EQ(a.out, b.out);
}

TEST_F(AttendTest, WeightsComeBackAsScoresOnceTheGlobalsAreKnown) {
  const std::vector<AttendPage> pages = {{0, StorePage(0), {}},
                                         {1, StorePage(1), {}}};
  const auto first = Attend(Request(pages), 1);
  ASSERT_TRUE(first.ok());
  const Root root = RootOf(first->front().subtrees);
  const AttendGlobals globals{1, root.m, root.l};

  // The next step brings them; then it is sent again, as after a lost reply.
  AttendRequest next = Request(pages);
  next.sequences[0].has_previous = true;
  next.sequences[0].previous = globals;
  ASSERT_TRUE(Attend(next, 2).ok());
  ASSERT_TRUE(Attend(next, 2).ok());
  const auto sums = Collect(1, {{kLayer, globals}}, {0, 1});

  ASSERT_TRUE(sums.ok()) << sums.status();
  ASSERT_EQ(sums->size(), 2u);
  int64_t total = 0;
  for (const PageScores& page : *sums) {
    for (const int64_t sum : page.sums) total += sum;
  }
  // One query row's weights add up to 1, over the three layers that share it.
  EXPECT_NEAR(static_cast<double>(total) * 0x1p-40, 1.0 / 3, 1e-5);
  // Closing the second step and collecting gives as much again, and a
  // repetition of the request gives the same.
  const AttendGlobals second{2, root.m, root.l};
  const auto more = Collect(2, {{kLayer, second}}, {0, 1});
  const auto again = Collect(2, {{kLayer, second}}, {0, 1});
  ASSERT_TRUE(more.ok() && again.ok());
  EXPECT_EQ((*more)[0].sums, (*sums)[0].sums);
  EXPECT_EQ((*again)[1].sums, (*more)[1].sums);
  EXPECT_THAT(Collect(3, {}, {0, 1}).value(), IsEmpty());
  EXPECT_EQ(Collect(2, {}, {0, 1}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AttendTest, GlobalsThatNoAttentionCanHaveAreRefused) {
  const std::vector<AttendPage> pages = {{0, StorePage(0), {}}};
  const auto first = Attend(Request(pages), 1);
  ASSERT_TRUE(first.ok());
  const Root root = RootOf(first->front().subtrees);
  AttendGlobals below{1, root.m, root.l};
  below.m[2] = -1000.0f;
  AttendGlobals none{1, root.m, root.l};
  none.l[0] = 0.0f;

  EXPECT_THAT(
      std::string(Collect(1, {{kLayer, below}}, {0}).status().message()),
      HasSubstr("query head 2"));
  EXPECT_THAT(std::string(Collect(1, {{kLayer, none}}, {0}).status().message()),
              HasSubstr("l is 0"));
}

TEST_F(AttendTest, AFailedSequenceNamesItsPageAndTheOthersAreAnswered) {
  Open(2);
  const Generation generation = StorePage(0);
  AttendRequest request = Request({{0, generation, {}}});
  AttendSequence other = request.sequences[0];
  other.session = TestSession(2);
  other.pages[0].page_index = 3;
  request.sequences.push_back(other);

  const auto replies = Attend(request);

  ASSERT_TRUE(replies.ok()) << replies.status();
  EXPECT_EQ((*replies)[0].code, absl::StatusCode::kOk);
  EXPECT_EQ((*replies)[1].code, absl::StatusCode::kNotFound);
  EXPECT_EQ((*replies)[1].failed_page, 3u);
}

TEST_F(AttendTest, AReusedPageIsRefusedUnderItsOldGeneration) {
  const Generation generation = StorePage(0);

  const auto replies =
      Attend(Request({{0, Generation{generation.value + 1}, {}}}));

  ASSERT_TRUE(replies.ok());
  EXPECT_EQ((*replies)[0].code, absl::StatusCode::kFailedPrecondition);
}

TEST_F(AttendTest, APageWithoutLiveRowsNeedNotBeThereAndCompletesItsSubtree) {
  const Generation generation = StorePage(0);

  const auto replies =
      Attend(Request({{0, generation, {}}, {1, Generation{}, {0, 0}}}));

  ASSERT_TRUE(replies.ok());
  ASSERT_EQ((*replies)[0].code, absl::StatusCode::kOk);
  ASSERT_EQ((*replies)[0].subtrees.size(), 1u);
  EXPECT_EQ((*replies)[0].subtrees[0].level, 1u);
}

TEST_F(AttendTest, PagesWithoutLiveRowsKeepNoWeights) {
  const AttendPage page = {0, StorePage(0), {}};
  ASSERT_TRUE(Attend(Request({page}), 1).ok());
  const size_t of_one_page = scores_.kept_bytes();
  std::vector<AttendPage> pages = {page};
  for (int32_t dead = 1000; dead < 2000; ++dead) {
    pages.push_back({dead, Generation{}, {0, 0}});
  }

  AttendRequest request = Request(pages);
  request.sequences[0].position = 2000 * kPageTokens;
  ASSERT_TRUE(Attend(request, 2).ok());

  EXPECT_EQ(scores_.kept_bytes(), of_one_page);
}

TEST_F(AttendTest, ALayerThatTheSessionDoesNotHaveIsRefused) {
  for (const int32_t layer : {-1, 3, 99}) {
    const auto reply = AttendPages(context_, {"tenant", Epoch{77}, layer, 1},
                                   EncodeAttendRequest(Request({})).value());
    ASSERT_TRUE(reply.ok());
    const auto replies = DecodeAttendReply(*reply);
    ASSERT_TRUE(replies.ok());
    EXPECT_EQ((*replies)[0].code, absl::StatusCode::kInvalidArgument) << layer;
  }
  EXPECT_EQ(scores_.num_sessions(), 0u);
}

TEST_F(AttendTest, APositionBehindTheLongestSequenceIsRefused) {
  AttendRequest request = Request({{0, StorePage(0), {}}});
  for (const int64_t position : {std::numeric_limits<int64_t>::max(),
                                 int64_t{kMaxSequencePages} * kPageTokens}) {
    request.sequences[0].position = position;
    const auto replies = Attend(request);
    ASSERT_TRUE(replies.ok());
    EXPECT_EQ((*replies)[0].code, absl::StatusCode::kInvalidArgument);
  }
  request.sequences[0].position = int64_t{kMaxSequencePages} * kPageTokens - 1;
  EXPECT_EQ((*Attend(request))[0].code, absl::StatusCode::kOk);
}

// The subtrees that attention gives over `blocks` of 64 rows each, pages
// 0, 1...
std::vector<AttendSubtree> SubtreesOver(
    ThreadPool& threads, const AttendRequest& request,
    const std::vector<std::vector<std::byte>>& blocks) {
  const KvGeometry& g = kSmallGeometry;
  const std::vector<uint64_t> live = {~0ull, ~0ull};
  std::vector<Run> runs(blocks.size());
  std::vector<PageRuns> pages(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    runs[i] = {blocks[i].data() + g.KeyOffset(kPageTokens, 0, 0),
               blocks[i].data() + g.ValueOffset(kPageTokens, 0, 0),
               g.HeadStride(kPageTokens), 0, kPageTokens};
    pages[i] = {static_cast<int32_t>(i), live.data(), {&runs[i], 1}};
  }
  std::vector<float> queries;
  for (size_t i = 0; i < size_t{kQueryHeads} * kDim; ++i) {
    queries.push_back(Bf16ToFloat(
        LoadLe<uint16_t>(request.sequences[0].queries.data() + 2 * i)));
  }
  AttentionSequence row;
  row.num_rows = 1;
  row.first_position = request.sequences[0].position;
  row.pages = pages;
  AttentionArgs args;
  args.geometry = g;
  args.num_query_heads = kQueryHeads;
  args.scale = kScale;
  args.queries = queries.data();
  args.sequences = {&row, 1};
  std::vector<AttendSubtree> subtrees;
  SubtreeSink sink;
  sink.subtree = [&](int, SubtreeId id, PartialView view) {
    subtrees.push_back({static_cast<uint32_t>(id.level),
                        static_cast<uint32_t>(id.index),
                        {view.m, view.m + kQueryHeads},
                        {view.l, view.l + kQueryHeads},
                        {view.out, view.out + kQueryHeads * kDim}});
  };
  AttentionSubtrees(threads, args, sink);
  return subtrees;
}

TEST_F(AttendTest, ACompressedPageIsAttendedAsItsCodesDecodeBitForBit) {
  const Generation t1 = ReserveAndStore(1, {kLayer, 0}).generation;
  ReserveAndStore(2, {kLayer, 1});
  ReserveAndStore(3, {kLayer, 2});
  const PagePlacement eight = Compress(4, ToT2({kLayer, 1}));
  const PagePlacement four = Compress(5, ToT2({kLayer, 2}, 4));
  const AttendRequest request =
      Request({{0, t1, {}},
               {1, eight.generation, {}, Tier::kT2, 8},
               {2, four.generation, {}, Tier::kT2, 4}});

  const auto replies = Attend(request);

  std::vector<std::vector<std::byte>> blocks(
      3, std::vector<std::byte>(kSmallGeometry.BlockBytes(kPageTokens)));
  for (size_t i = 0; i < 3; ++i) {
    const StoredPage page =
        directory_.PinStored(TestSession(1), {kLayer, static_cast<int32_t>(i)})
            .value();
    const int bits = page.identity.t2_bits;
    if (bits == 0) {
      std::memcpy(blocks[i].data(),
                  page.pin.data() + PageLayout::T1(kSmallGeometry).header_bytes,
                  blocks[i].size());
      continue;
    }
    const size_t bytes = T2HeadLayout::Of(kSmallGeometry, bits).head_bytes;
    for (size_t head = 0; head < 2; ++head) {
      ASSERT_TRUE(
          DecodeT2Head(
              kSmallGeometry, bits,
              {page.pin.data() +
                   PageLayout::T2(kSmallGeometry, bits).header_bytes +
                   head * bytes,
               bytes},
              ~0ull, blocks[i].data() + kSmallGeometry.KeyOffset(64, head, 0),
              blocks[i].data() + kSmallGeometry.ValueOffset(64, head, 0))
              .ok());
    }
  }
  const auto expected = SubtreesOver(threads_, request, blocks);
  ASSERT_TRUE(replies.ok()) << replies.status();
  const AttendSequenceReply& reply = replies->front();
  ASSERT_EQ(reply.code, absl::StatusCode::kOk);
  ASSERT_EQ(reply.subtrees.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(reply.subtrees[i].level, expected[i].level);
    EXPECT_EQ(reply.subtrees[i].m, expected[i].m);
    EXPECT_EQ(reply.subtrees[i].l, expected[i].l);
    EXPECT_EQ(reply.subtrees[i].out, expected[i].out);
  }
}

TEST_F(AttendTest, TheOldGenerationOfACompressedPageIsAttendedAsBefore) {
  const Generation old = ReserveAndStore(1, {kLayer, 0}).generation;
  const auto before = Attend(Request({{0, old, {}}}));
  const Generation now = Compress(2, ToT2({kLayer, 0}, 4)).generation;

  const auto after = Attend(Request({{0, old, {}}}));
  const auto lossy = Attend(Request({{0, now, {}, Tier::kT2, 4}}));
  const auto wrong = Attend(Request({{0, now, {}}}));

  ASSERT_TRUE(before.ok() && after.ok() && lossy.ok() && wrong.ok());
  EXPECT_EQ(after->front().subtrees.at(0).out,
            before->front().subtrees.at(0).out);
  EXPECT_NE(lossy->front().subtrees.at(0).out,
            before->front().subtrees.at(0).out);
  EXPECT_EQ(wrong->front().code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(wrong->front().failed_page, 0u);
}

TEST_F(AttendTest, ACompressedPageWithDamagedExceptionsFailsItsSequence) {
  ReserveAndStore(1, {kLayer, 0});
  const Generation now = Compress(2, ToT2({kLayer, 0})).generation;
  {
    const StoredPage page =
        directory_.PinStored(TestSession(1), {kLayer, 0}).value();
    std::byte* slots = page.pin.data() +
                       PageLayout::T2(kSmallGeometry, 8).header_bytes +
                       T2HeadLayout::Of(kSmallGeometry, 8).exception_slots;
    slots[1] = slots[0];
  }

  const auto replies = Attend(Request({{0, now, {}, Tier::kT2, 8}}));

  ASSERT_TRUE(replies.ok()) << replies.status();
  EXPECT_EQ(replies->front().code, absl::StatusCode::kDataLoss);
  EXPECT_EQ(replies->front().failed_page, 0u);
}

TEST_F(AttendTest, ASessionNamedTwiceIsRefused) {
  AttendRequest request = Request({{0, StorePage(0), {}}});
  request.sequences.push_back(request.sequences[0]);

  EXPECT_EQ(Attend(request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AttendTest, WeightsBeyondTheBoundAreLostAndCounted) {
  AttendScores small(1000);
  const AttendContext context{directory_, small, threads_, data_metrics_};
  const AttendRequest request = Request({{0, StorePage(0), {}}});

  ASSERT_TRUE(AttendPages(context, {"tenant", Epoch{77}, kLayer, 1},
                          EncodeAttendRequest(request).value())
                  .ok());

  EXPECT_EQ(small.kept_bytes(), 0u);
  EXPECT_THAT(metrics_.Render(), HasSubstr("farkv_node_lost_scores_total 1"));
}

TEST_F(AttendTest, ARequestWithMoreLeavesThanTheBoundIsRefused) {
  AttendContext context = context_;
  context.max_leaf_bytes = 2 * AttendLeafBytes(kQueryHeads, kDim);
  const AttendCall call{"tenant", Epoch{77}, kLayer, 1};
  std::vector<AttendPage> pages = {{0, StorePage(0), {}},
                                   {1, StorePage(1), {}}};
  EXPECT_TRUE(
      AttendPages(context, call, EncodeAttendRequest(Request(pages)).value())
          .ok());

  pages.push_back({2, StorePage(2), {}});

  EXPECT_EQ(
      AttendPages(context, call, EncodeAttendRequest(Request(pages)).value())
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

// As of one request; the first part comes again, as a repetition does.
TEST_F(AttendTest, ScoresOfASequenceInSeveralRequestsAddUpOnce) {
  std::vector<AttendPage> pages;
  for (int32_t i = 0; i < 4; ++i) pages.push_back({i, StorePage(i), {}});
  auto whole = Attend(Request(pages), 1);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const Root root = RootOf(whole->front().subtrees);
  const auto expected =
      Collect(1, {{kLayer, {1, root.m, root.l}}}, {0, 1, 2, 3});
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_EQ(expected->size(), 4u);

  ASSERT_TRUE(Attend(Request({pages[0], pages[1]}), 2).ok());
  ASSERT_TRUE(Attend(Request({pages[2], pages[3]}), 2).ok());
  ASSERT_TRUE(Attend(Request({pages[0], pages[1]}), 2).ok());

  const auto found = Collect(2, {{kLayer, {2, root.m, root.l}}}, {0, 1, 2, 3});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*found)[i].page_index, (*expected)[i].page_index);
    EXPECT_EQ((*found)[i].sums, (*expected)[i].sums) << i;
  }
}

// Its id is used again at once, its steps and collections count from 1 again.
TEST_F(AttendTest, ASessionThatIsOpenedAgainHasNoScoresOfTheOneBefore) {
  const auto collect = [&](AttendScores& scores,
                           const std::vector<AttendPage>& pages) {
    const AttendContext context{directory_, scores, threads_, data_metrics_};
    const auto first = AttendPages(context, {"tenant", Epoch{77}, kLayer, 1},
                                   EncodeAttendRequest(Request(pages)).value());
    EXPECT_TRUE(first.ok()) << first.status();
    const Root root = RootOf(DecodeAttendReply(*first)->front().subtrees);
    ScoresRequest request;
    request.num_query_heads = kQueryHeads;
    request.collection = 1;
    request.layers = {{kLayer, {1, root.m, root.l}}};
    request.pages = {0, 1};
    const auto reply =
        CollectScores(context, Caller(), EncodeScoresRequest(request).value());
    EXPECT_TRUE(reply.ok()) << reply.status();
    return DecodeScoresReply(*reply).value();
  };
  const std::vector<AttendPage> one = {{0, StorePage(0), {}}};
  ASSERT_EQ(collect(scores_, one).size(), 1u);
  ASSERT_TRUE(Attend(Request(one), 2).ok());  // kept, never applied
  directory_.Close(TestSession(1), Epoch{77}).value();
  Open();
  const std::vector<AttendPage> two = {{0, StorePage(0), {}},
                                       {1, StorePage(1), {}}};

  const auto found = collect(scores_, two);

  AttendScores fresh;
  const auto expected = collect(fresh, two);
  ASSERT_EQ(expected.size(), 2u);
  ASSERT_EQ(found.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found[i].sums, expected[i].sums);
}

TEST_F(AttendTest, ClosedSessionsAreForgotten) {
  ASSERT_TRUE(Attend(Request({{0, StorePage(0), {}}})).ok());
  EXPECT_GT(scores_.kept_bytes(), 0u);

  scores_.ForgetClosed([this] { return directory_.Instances(); });
  EXPECT_GT(scores_.kept_bytes(), 0u);
  directory_.Close(TestSession(1), Epoch{77}).value();
  scores_.ForgetClosed([this] { return directory_.Instances(); });

  EXPECT_EQ(scores_.kept_bytes(), 0u);
  EXPECT_EQ(scores_.num_sessions(), 0u);
}

}  // namespace
}  // namespace farkv

#include "tests/golden/golden_bodies.h"

#include <algorithm>
#include <limits>

#include "tests/golden/golden_file.h"

namespace farkv::testing {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

KvGeometry TwoHeadsOf16() {
  KvGeometry geometry;
  geometry.num_kv_heads = 2;
  geometry.head_dim = 16;
  return geometry;
}

AttendSubtree Subtree(uint32_t level, uint32_t index, float base) {
  AttendSubtree subtree{
      level, index, {base, base + 1}, {base + 2, base + 3}, {}};
  for (int i = 0; i < 32; ++i) {
    subtree.out.push_back(base + static_cast<float>(i) / 4);
  }
  return subtree;
}

}  // namespace

SessionId GoldenSession() {
  SessionId id;
  for (size_t i = 0; i < id.bytes.size(); ++i) {
    id.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  }
  return id;
}

StoreRequest GoldenStoreRequest() {
  StoreRequest request;
  request.geometry = TwoHeadsOf16();
  request.items.push_back({3,
                           5,
                           Generation{9},
                           {0b101, uint64_t{1} << 63},
                           {0x11111111, 0x22222222, 0x33333333}});
  request.items.push_back({4,
                           6,
                           Generation{0x0102030405060708},
                           {0, 0b11},
                           {0x44444444, 0xfedcba98}});
  request.items.push_back(
      {4, 7, Generation{10}, {0b110, 0}, {0xdddd0001}, Tier::kT2, 8});
  return request;
}

std::vector<absl::StatusCode> GoldenStoreReply() {
  return {absl::StatusCode::kOk, absl::StatusCode::kFailedPrecondition,
          absl::StatusCode::kResourceExhausted};
}

std::vector<FetchItem> GoldenFetchRequest() {
  return {{12, Generation{3}, {0xf0f0, 0}},
          {900, Generation{uint64_t{1} << 40}, {1, kAll}},
          {13, Generation{4}, {0, 0b110}, Tier::kT2, 8},
          {14, Generation{5}, {uint64_t{1} << 63, 1}, Tier::kT2, 4}};
}

FetchReply GoldenFetchReply() {
  using absl::StatusCode;
  FetchReply reply;
  reply.geometry = TwoHeadsOf16();
  reply.items = {
      {12,
       StatusCode::kOk,
       Generation{3},
       {0b1001, 0b10},
       {0xaaaa0001, 0xaaaa0002, 0xaaaa0003}},
      {900, StatusCode::kNotFound, Generation{uint64_t{1} << 40}, {0, 0}, {}},
      {13,
       StatusCode::kOk,
       Generation{4},
       {0, 0b110},
       {0xbbbb0001},
       Tier::kT2,
       8},
      {15,
       StatusCode::kFailedPrecondition,
       Generation{6},
       {0, 0},
       {},
       Tier::kT2,
       8},
      {14,
       StatusCode::kOk,
       Generation{5},
       {uint64_t{1} << 63, 1},
       {0xcccc0001, 0xcccc0002},
       Tier::kT2,
       4}};
  return reply;
}

AttendRequest GoldenAttendRequest() {
  AttendRequest request;
  request.geometry = TwoHeadsOf16();
  request.num_query_heads = 4;
  request.scale = 0.25f;
  AttendSequence first;
  first.session = GoldenSession();
  first.position = 1000;
  first.pages = {{3, Generation{11}, {0xff, 0xfe}},
                 {4, Generation{12}, {1, 0}, Tier::kT2, 8}};
  first.queries = Pattern(4 * 32);
  AttendSequence second;
  second.session = GoldenSession();
  std::reverse(second.session.bytes.begin(), second.session.bytes.end());
  second.position = int64_t{1} << 33;
  second.has_previous = true;
  second.previous = {
      77,
      {1.0f, -2.0f, 3.5f, -std::numeric_limits<float>::infinity()},
      {1.0f, 2.0f, 4.0f, 0.0f}};
  second.scored = true;
  second.pages = {{0, Generation{13}, {}},
                  {1, Generation{14}, {}},
                  {7, Generation{15}, {kAll, 2}, Tier::kT2, 4}};
  second.queries = Pattern(4 * 32, 1000);
  request.sequences = {first, second};
  return request;
}

std::vector<AttendSequenceReply> GoldenAttendReply() {
  AttendSequenceReply answered;
  answered.subtrees = {Subtree(4, 3, 1.0f), Subtree(0, 64, -8.0f)};
  AttendSequenceReply refused;
  refused.code = absl::StatusCode::kUnavailable;
  refused.failed_page = 900;
  return {answered, refused};
}

ScoresRequest GoldenScoresRequest() {
  ScoresRequest request;
  request.num_query_heads = 2;
  request.collection = 6;
  request.layers = {
      {0, {77, {1.0f, -std::numeric_limits<float>::infinity()}, {2.0f, 0.0f}}},
      {5, {78, {-3.0f, 0.5f}, {1.0f, 64.0f}}}};
  request.pages = {0, 7, 900};
  return request;
}

std::vector<PageScores> GoldenScoresReply() {
  std::vector<PageScores> pages = {{0, {}}, {7, {}}};
  for (int64_t i = 0; i < kPageTokens; ++i) {
    pages[0].sums[static_cast<size_t>(i)] = (int64_t{1} << 40) - i;
    pages[1].sums[static_cast<size_t>(i)] = 3 - i;
  }
  return pages;
}

}  // namespace farkv::testing

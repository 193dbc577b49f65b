#include "common/attention_tree/tree.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;

constexpr int kDim = 16;
constexpr float kEmpty = -std::numeric_limits<float>::infinity();

// Partials of one head as plain numbers: O, m, l.
using Node = std::vector<float>;

PartialView View(Node& node) {
  return {&node[kDim], &node[kDim + 1], node.data()};
}

Node Copy(PartialView view) {
  Node node(view.out, view.out + kDim);
  node.push_back(*view.m);
  node.push_back(*view.l);
  return node;
}

Node Leaf(int32_t page) {
  Node node;
  const uint64_t seed = CounterDraw(7, {static_cast<uint64_t>(page)});
  for (uint64_t i = 0; i < kDim; ++i) {
    node.push_back(static_cast<float>(ToUnit(SplitMix64At(seed, i)) - 0.5));
  }
  node.push_back(static_cast<float>(8 * ToUnit(SplitMix64At(seed, 100))));
  node.push_back(static_cast<float>(1 + ToUnit(SplitMix64At(seed, 101))));
  return node;
}

// The definition, by recursion; no value for an absent node.
std::optional<Node> NodeOf(const std::set<int32_t>& pages, int level,
                           int32_t index) {
  const SubtreeId id{level, index};
  const auto first = std::lower_bound(pages.begin(), pages.end(), id.begin());
  if (first == pages.end() || *first >= id.end()) return std::nullopt;
  if (level == 0) return Leaf(index);
  std::optional<Node> left = NodeOf(pages, level - 1, 2 * index);
  std::optional<Node> right = NodeOf(pages, level - 1, 2 * index + 1);
  if (!left.has_value()) return right;
  if (!right.has_value()) return left;
  MergePartials(1, kDim, View(*left), View(*right));
  return left;
}

Node WholeOf(const std::set<int32_t>& pages) {
  return NodeOf(pages, AttentionTree::kRootLevel, 0).value();
}

void AddLeaf(AttentionTree& tree, int32_t page) {
  Node leaf = Leaf(page);
  CopyPartials(1, kDim, View(leaf), tree.Begin({0, page}));
}

std::set<int32_t> RandomPages(uint64_t seed) {
  const uint64_t range = 1 + SplitMix64At(seed, 0) % 200;
  const uint64_t keep = 1 + SplitMix64At(seed, 1) % 10;
  std::set<int32_t> pages = {static_cast<int32_t>(range)};
  for (uint64_t i = 0; i < range; ++i) {
    if (SplitMix64At(seed, 2 + i) % 10 < keep) {
      pages.insert(static_cast<int32_t>(i));
    }
  }
  return pages;
}

TEST(AttentionTreeTest, LeavesInOrderGiveTheRecursiveDefinitionsBits) {
  AttentionTree tree;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::set<int32_t> pages = RandomPages(seed);
    tree.Reset(1, kDim, AttentionTree::Gaps::kAbsent);
    for (const int32_t page : pages) AddLeaf(tree, page);

    ASSERT_EQ(Copy(tree.Root()), WholeOf(pages)) << "seed " << seed;
  }
}

// Cuts (level, index) at random into aligned subtrees.
void Cut(const std::set<int32_t>& pages, SubtreeId id, uint64_t& state,
         std::vector<SubtreeId>& parts) {
  if (!NodeOf(pages, id.level, id.index).has_value()) return;
  state = SplitMix64Mix(state + 1);
  if (id.level == 0 || (id.level < 6 && state % 3 == 0)) {
    parts.push_back(id);
    return;
  }
  Cut(pages, {id.level - 1, 2 * id.index}, state, parts);
  Cut(pages, {id.level - 1, 2 * id.index + 1}, state, parts);
}

TEST(AttentionTreeTest, AnySplitIntoAlignedSubtreesGivesTheSameBits) {
  AttentionTree tree;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::set<int32_t> pages = RandomPages(seed);
    uint64_t state = seed;
    std::vector<SubtreeId> parts;
    Cut(pages, {8, 0}, state, parts);
    tree.Reset(1, kDim, AttentionTree::Gaps::kAbsent);
    for (const SubtreeId id : parts) {
      Node node = NodeOf(pages, id.level, id.index).value();
      ASSERT_TRUE(tree.Add(id, View(node)).ok());
    }

    ASSERT_EQ(Copy(tree.Root()), WholeOf(pages)) << "seed " << seed;
  }
}

TEST(AttentionTreeTest, PartiesWithPagesByStripeGiveTheBitsOfOneParty) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::set<int32_t> pages = RandomPages(seed);
    const int32_t stripe = 1 << (SplitMix64At(seed, 999) % 4);
    std::map<int32_t, std::pair<SubtreeId, Node>> all;  // by first page
    for (int party = 0; party < 3; ++party) {
      AttentionTree tree;
      tree.Reset(1, kDim, AttentionTree::Gaps::kElsewhere,
                 static_cast<int>(pages.size()));
      for (const int32_t page : pages) {
        if (page / stripe % 3 == party) AddLeaf(tree, page);
      }
      for (int i = 0, end = tree.NumSubtrees(); i < end; ++i) {
        const SubtreeId id = tree.subtree(i);
        all[static_cast<int32_t>(id.begin())] = {id, Copy(tree.partials(i))};
      }
    }
    AttentionTree whole;
    whole.Reset(1, kDim, AttentionTree::Gaps::kAbsent);
    for (auto& [page, part] : all) {
      ASSERT_TRUE(whole.Add(part.first, View(part.second)).ok());
    }

    ASSERT_EQ(Copy(whole.Root()), WholeOf(pages)) << "seed " << seed;
  }
}

TEST(AttentionTreeTest, ListsTheMaximalSubtreesOfWhatItHolds) {
  AttentionTree tree;
  tree.Reset(1, kDim, AttentionTree::Gaps::kElsewhere, 8);
  for (const int32_t page : {1, 2, 3, 4, 5, 6, 7, 8, 16, 17}) {
    AddLeaf(tree, page);
  }

  std::vector<SubtreeId> ids;
  for (int i = 0, end = tree.NumSubtrees(); i < end; ++i) {
    ids.push_back(tree.subtree(i));
  }
  EXPECT_THAT(ids,
              ElementsAre(SubtreeId{0, 1}, SubtreeId{1, 1}, SubtreeId{2, 1},
                          SubtreeId{0, 8}, SubtreeId{1, 8}));
}

TEST(AttentionTreeTest, NothingAddedIsTheNeutralElement) {
  AttentionTree tree;
  tree.Reset(1, kDim, AttentionTree::Gaps::kAbsent);

  Node want(kDim + 2, 0.0f);
  want[kDim] = kEmpty;
  EXPECT_EQ(Copy(tree.Root()), want);
}

TEST(AttentionTreeTest, TheLastPageThatAnIndexCanNameFits) {
  AttentionTree tree;
  tree.Reset(1, kDim, AttentionTree::Gaps::kAbsent);
  const std::set<int32_t> pages = {0, 5, 1 << 30, 0x7ffffffe, 0x7fffffff};
  for (const int32_t page : pages) AddLeaf(tree, page);

  EXPECT_EQ(Copy(tree.Root()), WholeOf(pages));
}

TEST(AttentionTreeTest, ASubtreeThatOverlapsOrComesLateIsRefused) {
  AttentionTree tree;
  tree.Reset(1, kDim, AttentionTree::Gaps::kAbsent);
  Node node = Leaf(4);
  ASSERT_TRUE(tree.Add({2, 1}, View(node)).ok());

  EXPECT_EQ(tree.Add({0, 7}, View(node)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tree.Add({3, 0}, View(node)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tree.Add({0, 0}, View(node)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tree.Add({-1, 9}, View(node)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tree.Add({31, 1}, View(node)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Copy(tree.Root()), node);
}

TEST(AttentionTreeTest, MoreSubtreesThanThereIsRoomForAreRefused) {
  AttentionTree tree;
  tree.Reset(1, kDim, AttentionTree::Gaps::kElsewhere, 1);
  Node node = Leaf(0);
  ASSERT_TRUE(tree.Add({0, 0}, View(node)).ok());
  ASSERT_TRUE(tree.Add({0, 2}, View(node)).ok());

  EXPECT_EQ(tree.Add({0, 4}, View(node)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(tree.NumSubtrees(), 2);
}

}  // namespace
}  // namespace farkv

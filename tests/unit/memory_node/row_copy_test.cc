#include "memory_node/data/row_copy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "tests/unit/memory_node/stored_rows.h"

namespace farkv {
namespace {

constexpr KvGeometry kGeometry{
    .num_layers = 1, .num_kv_heads = 3, .head_dim = 32, .dtype = DType::kF32};

class RowCopyTest : public ::testing::Test {
 protected:
  RowCopyTest()
      : page_(static_cast<std::byte*>(std::aligned_alloc(
                  kPageAlignment, PageLayout::T1(kGeometry).stride)),
              &std::free) {
    PageHeader header(page_.get(), kGeometry);
    header.Format({}, kGeometry);
    header.set_generation({});  // the pool's part
  }

  absl::Status Store(const std::vector<uint64_t>& rows) {
    return StoreRows(kGeometry, rows, CrcsOf(kGeometry, content_, rows),
                     PackRows(kGeometry, content_, rows), page_.get());
  }
  std::vector<std::byte> Gather(const std::vector<uint64_t>& rows,
                                std::vector<uint32_t>& crcs) {
    std::vector<std::byte> packed(NumRows(rows) * kGeometry.RowBytes());
    GatherRows(kGeometry, rows, page_.get(), packed.data(), crcs);
    return packed;
  }

  const TestPage content_{kGeometry, 42};
  std::unique_ptr<std::byte, decltype(&std::free)> page_;
};

TEST_F(RowCopyTest, WhatIsStoredIsGatheredInEverySubset) {
  const std::vector<uint64_t> all(3, ~0ull);
  ASSERT_TRUE(Store(all).ok());
  EXPECT_TRUE(CheckPageRows(page_.get(), kGeometry, all).ok());

  for (const std::vector<uint64_t>& rows :
       {all, std::vector<uint64_t>{1, 1ull << 63, 0},
        std::vector<uint64_t>{0, 0, 0},
        std::vector<uint64_t>{0x5555555555555555, 0xff00ff00ff00ff00, 0x7e},
        std::vector<uint64_t>{~1ull, ~0ull >> 1, 0x8000000000000001}}) {
    std::vector<uint32_t> crcs;
    EXPECT_EQ(Gather(rows, crcs), PackRows(kGeometry, content_, rows));
    EXPECT_EQ(crcs, CrcsOf(kGeometry, content_, rows));
  }
}

TEST_F(RowCopyTest, ASubsetIsStoredIntoItsSlotsAndTheHeaderSealed) {
  const std::vector<uint64_t> rows = {0b1010, ~0ull << 60, 1};

  ASSERT_TRUE(Store(rows).ok());

  EXPECT_TRUE(CheckPageRows(page_.get(), kGeometry, rows).ok());
  EXPECT_TRUE(CheckPageHeader(page_.get(), kGeometry, {}).ok());
  EXPECT_TRUE(HoldsRows(kGeometry, rows, CrcsOf(kGeometry, content_, rows),
                        page_.get()));
}

TEST_F(RowCopyTest, OneFlippedBitIsNamed) {
  const std::vector<uint64_t> rows = {~0ull, ~0ull, ~0ull};
  std::vector<std::byte> packed = PackRows(kGeometry, content_, rows);
  packed[kGeometry.HeadStride(kPageTokens) + 5 * kGeometry.VectorBytes()] ^=
      std::byte{4};

  const absl::Status status = StoreRows(
      kGeometry, rows, CrcsOf(kGeometry, content_, rows), packed, page_.get());

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.ToString().find("head 1, slot 5"), std::string::npos);
}

TEST_F(RowCopyTest, OtherRowsAreNotTakenForTheStoredOnes) {
  const std::vector<uint64_t> rows = {3, 3, 3};
  ASSERT_TRUE(Store(rows).ok());
  const TestPage other(kGeometry, 43);

  EXPECT_FALSE(
      HoldsRows(kGeometry, rows, CrcsOf(kGeometry, other, rows), page_.get()));
}

}  // namespace
}  // namespace farkv

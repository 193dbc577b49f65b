#include "gpu_worker/tiering/run_cache.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr int kTokens = 5 * kPageTokens + 23;

// What a vector's first eight bytes say: where it belongs.
uint64_t Tag(int layer, int64_t position, size_t head, bool value) {
  return CounterDraw(7, {static_cast<uint64_t>(layer),
                         static_cast<uint64_t>(position), head, value});
}

class RunCacheTest : public ::testing::TestWithParam<int> {
 protected:
  RunCacheTest()
      : lines_(
            T0Lines::Create(*device_, geometry_, GetParam(), uint64_t{4} << 20)
                .value()),
        table_(geometry_, GetParam()),
        cache_(geometry_) {}

  void WriteTag(std::byte* at, int layer, int64_t position, size_t head,
                bool value) {
    const uint64_t tag = Tag(layer, position, head, value);
    std::memcpy(at, &tag, sizeof(tag));
  }

  // Fills the line rows of positions [first, end).
  void Fill(int64_t first, int64_t end) {
    const auto g = static_cast<size_t>(GetParam());
    for (int64_t p = first; p < end; ++p) {
      const Page& page = table_.page(static_cast<int>(p / kPageTokens));
      const auto slot = static_cast<size_t>(p % kPageTokens);
      for (int layer = 0; layer < geometry_.num_layers; ++layer) {
        std::byte* line = lines_.Line(layer, page.lines[slot / g]);
        for (size_t h = 0; h < 2; ++h) {
          WriteTag(line + geometry_.KeyOffset(g, h, slot % g), layer, p, h,
                   false);
          WriteTag(line + geometry_.ValueOffset(g, h, slot % g), layer, p, h,
                   true);
        }
      }
    }
  }

  // Blocks of the cold slots: packed as a fetch gives them, or whole pages as
  // a map does. Every other page one way, every other the other.
  std::vector<ColdBlock> MakeCold(int layer) {
    std::vector<ColdBlock> cold;
    for (int i = 0; i < table_.num_pages(); ++i) {
      const Page& page = table_.page(i);
      if (page.cold() == 0) continue;
      const bool packed = i % 2 == 0;
      const uint64_t slots = packed ? page.cold() : ~uint64_t{0};
      const auto rows = static_cast<size_t>(std::popcount(slots));
      storage_.emplace_back(geometry_.BlockBytes(rows));
      std::byte* block = storage_.back().data();
      size_t row = 0;
      for (int slot = 0; slot < kPageTokens; ++slot) {
        if ((slots >> slot & 1) == 0) continue;
        for (size_t h = 0; h < 2; ++h) {
          const int64_t p = int64_t{i} * kPageTokens + slot;
          WriteTag(block + geometry_.KeyOffset(rows, h, row), layer, p, h,
                   false);
          WriteTag(block + geometry_.ValueOffset(rows, h, row), layer, p, h,
                   true);
        }
        ++row;
      }
      cold.push_back({page.index, slots, block,
                      packed ? RunSource::kStaging : RunSource::kMappedPage});
    }
    return cold;
  }

  void DropSomeGroups(uint64_t seed) {
    for (int i = 0; i + 1 < table_.num_pages(); ++i) {
      Page& page = table_.page(i);
      for (int slot = 0; slot < kPageTokens; slot += GetParam()) {
        const uint64_t draw = CounterDraw(
            seed, {static_cast<uint64_t>(i), static_cast<uint64_t>(slot)});
        if (draw % 3 == 0) table_.Drop(page, slot, lines_);
      }
    }
  }

  void ExpectRunsCoverEverySlotOnce(int layer) {
    const auto cold = MakeCold(layer);
    const auto updated = cache_.Update(layer, table_, lines_, cold);
    ASSERT_TRUE(updated.ok()) << updated.status();
    const auto pages = *updated;
    ASSERT_EQ(pages.size(), static_cast<size_t>(table_.num_pages()));
    for (size_t i = 0; i < pages.size(); ++i) {
      const Page& page = table_.page(static_cast<int>(i));
      ASSERT_EQ(pages[i].page_index, page.index);
      ASSERT_EQ(pages[i].live[0], page.written);
      ASSERT_EQ(pages[i].live[1], page.written);
      uint64_t covered = 0;
      int last = -1;
      for (const farkv::Run& run : pages[i].runs) {
        ASSERT_GT(static_cast<int>(run.first_slot), last);
        last = run.first_slot + run.length - 1;
        const uint64_t mask = SlotMask(run.first_slot, run.length);
        ASSERT_EQ(covered & mask, 0u);
        covered |= mask;
        ExpectBytes(run, layer, page);
      }
      ASSERT_EQ(covered, page.written);
    }
  }

  void ExpectBytes(const farkv::Run& run, int layer, const Page& page) {
    for (int i = 0; i < run.length; ++i) {
      const int64_t p = int64_t{page.index} * kPageTokens + run.first_slot + i;
      const size_t offset = static_cast<size_t>(i) * geometry_.VectorBytes();
      for (size_t h = 0; h < 2; ++h) {
        uint64_t key = 0;
        uint64_t value = 0;
        std::memcpy(&key, run.keys + h * run.head_stride + offset, 8);
        std::memcpy(&value, run.values + h * run.head_stride + offset, 8);
        ASSERT_EQ(key, Tag(layer, p, h, false)) << "position " << p;
        ASSERT_EQ(value, Tag(layer, p, h, true)) << "position " << p;
      }
    }
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  const KvGeometry geometry_ = TestGeometry();
  T0Lines lines_;
  PageTable table_;
  RunCache cache_;
  std::vector<std::vector<std::byte>> storage_;
};

TEST_P(RunCacheTest, EverySlotIsCoveredOnceByItsOwnRow) {
  table_.Append(kTokens, lines_);
  Fill(0, kTokens);
  for (uint64_t round = 0; round < 6; ++round) {
    for (int layer = 0; layer < geometry_.num_layers; ++layer) {
      ExpectRunsCoverEverySlotOnce(layer);
    }
    DropSomeGroups(round);
  }
}

TEST_P(RunCacheTest, ARowThatIsAddedAndTakenAwayLeavesNoRun) {
  table_.Append(kPageTokens, lines_);
  Fill(0, kPageTokens);
  ExpectRunsCoverEverySlotOnce(0);
  table_.Append(1, lines_);
  Fill(kPageTokens, kPageTokens + 1);
  ExpectRunsCoverEverySlotOnce(0);

  table_.Truncate(kPageTokens, lines_);

  ExpectRunsCoverEverySlotOnce(0);
  EXPECT_EQ(lines_.used_sets(), table_.resident_sets());
  // The same page again, in another line: nothing of the first may be kept.
  const LineSetId taken = lines_.Allocate();
  table_.Append(1, lines_);
  Fill(kPageTokens, kPageTokens + 1);
  ExpectRunsCoverEverySlotOnce(0);
  lines_.Free(taken);
}

TEST_P(RunCacheTest, AColdSlotWithoutARowIsAnErrorThatNamesIt) {
  const int g = GetParam();
  table_.Append(2 * kPageTokens, lines_);
  Fill(0, 2 * kPageTokens);
  table_.Drop(table_.page(1), 0, lines_);
  std::vector<ColdBlock> cold = MakeCold(2);
  ASSERT_EQ(cold.size(), 1u);
  cold[0].slots &= ~SlotMask(g - 1, 1);

  const absl::Status none = cache_.Update(2, table_, lines_, {}).status();
  const absl::Status short_of_one =
      cache_.Update(2, table_, lines_, cold).status();

  EXPECT_EQ(none.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(short_of_one.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(none.message()), HasSubstr("layer 2, page 1"));
  EXPECT_THAT(std::string(short_of_one.message()),
              HasSubstr(absl::StrCat("0x", absl::Hex(SlotMask(g - 1, 1)),
                                     " are in no block")));
  ExpectRunsCoverEverySlotOnce(2);
}

TEST_P(RunCacheTest, TheTableReturnsEverySet) {
  table_.Append(kTokens, lines_);
  DropSomeGroups(3);
  EXPECT_EQ(lines_.used_sets(), table_.resident_sets());

  table_.Clear(lines_);

  EXPECT_EQ(lines_.used_sets(), 0);
  EXPECT_EQ(table_.resident_sets(), 0);
}

INSTANTIATE_TEST_SUITE_P(Granularities, RunCacheTest,
                         ::testing::Values(1, 16, 64),
                         [](const ::testing::TestParamInfo<int>& given) {
                           return std::to_string(given.param);
                         });

}  // namespace
}  // namespace farkv

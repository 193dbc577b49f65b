// Random operations on a PagePool against a trivial model: a list of pages
// that are not free. Prints the seed; random_run.h says how to replay it.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "common/page/page_format.h"
#include "memory_node/pool/page_pool.h"
#include "tests/model/random_run.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr size_t kUnit = 4096;
constexpr size_t kSlabBytes = 8 * kUnit;
constexpr size_t kSlabs = 5;
constexpr size_t kPatternOffset = 64;  // beyond the generation

struct ModelPage {
  enum class State { kUsed, kQuarantined, kReleased } state = State::kUsed;
  PageHandle handle;
  SlabClass slab_class;
  absl::Time until;
  std::vector<PagePin> pins;
  uint64_t pattern = 0;
};

class PagePoolModel {
 public:
  explicit PagePoolModel(uint64_t seed)
      : random_(seed), pool_(Options(), AllocateHeapSlab, clock_) {}

  void Step() {
    switch (random_.Below(9)) {
      case 0:
      case 1:
        return Allocate();
      case 2:
        return Release();
      case 3:
        return Quarantine();
      case 4:
        return Pin();
      case 5:
        return Unpin();
      case 6:
        return UseStaleHandle();
      case 7:
        ASSERT_TRUE(pool_.MakeAhead().ok());
        return;
      default:
        clock_.Advance(absl::Seconds(random_.Below(4)));
        DropFinishedQuarantines();
        pool_.Sweep();
    }
  }

  void Check() {
    const PagePoolStats stats = pool_.stats();
    size_t quarantined = 0, pins = 0;
    for (const ModelPage& page : pages_) {
      quarantined += page.state == ModelPage::State::kQuarantined;
      pins += page.pins.size();
      ASSERT_EQ(LoadPageGeneration(page.handle.data), page.handle.generation);
      uint64_t found = 0;
      std::memcpy(&found, page.handle.data + kPatternOffset, sizeof(found));
      ASSERT_EQ(found, page.pattern) << "memory was given away too early";
    }
    ASSERT_EQ(stats.used_pages + stats.quarantined_pages, pages_.size());
    ASSERT_EQ(stats.quarantined_pages, quarantined);
    ASSERT_EQ(stats.pins, pins);
    ASSERT_LE(stats.slab_bytes, kSlabs * kSlabBytes);
  }

  // Gives everything back; then every page must be free.
  void Finish() {
    for (ModelPage& page : pages_) {
      page.pins.clear();
      if (page.state == ModelPage::State::kUsed) {
        ASSERT_TRUE(pool_.Release(page.handle).ok());
      }
    }
    pages_.clear();
    clock_.Advance(absl::Hours(1));
    ASSERT_EQ(pool_.Sweep(), absl::InfiniteFuture());
    ASSERT_EQ(pool_.stats().used_bytes + pool_.stats().quarantined_bytes, 0u);
  }

 private:
  static PagePoolOptions Options() {
    PagePoolOptions options;
    options.slab_bytes = kSlabBytes;
    options.capacity_bytes = kSlabs * kSlabBytes;
    options.high_watermark = 10000;
    return options;
  }

  // Pages of `wanted` that can be had: what its slabs have left, and all of
  // every slab without a taken page.
  size_t Reachable(const SlabClass& wanted) const {
    std::map<uint32_t, std::pair<SlabClass, size_t>> busy;
    for (const ModelPage& page : pages_) {
      auto& [slab_class, taken] = busy[page.handle.slab_id];
      slab_class = page.slab_class;
      ++taken;
    }
    const size_t per_slab = kSlabBytes / wanted.stride;
    size_t pages = (kSlabs - busy.size()) * per_slab;
    for (const auto& [id, entry] : busy) {
      if (entry.first == wanted) pages += per_slab - entry.second;
    }
    return pages;
  }

  void Allocate() {
    const SlabClass wanted{random_.OneIn(2) ? "a" : "b",
                           kUnit << random_.Below(3)};
    const size_t count = random_.Below(6);
    DropFinishedQuarantines();
    const bool fits = count <= Reachable(wanted);
    auto pages = pool_.Allocate(wanted.tenant, wanted.stride, count);
    ASSERT_EQ(pages.ok(), fits) << pages.status();
    if (!fits) {
      ASSERT_EQ(pages.status().code(), absl::StatusCode::kResourceExhausted);
      return;
    }
    ASSERT_EQ(pages->size(), count);
    for (const PageHandle& handle : *pages) Adopt(handle, wanted);
  }

  void Adopt(const PageHandle& handle, const SlabClass& slab_class) {
    for (const ModelPage& page : pages_) {
      if (page.handle.slab_id != handle.slab_id) continue;
      ASSERT_NE(page.handle.page, handle.page) << "given out twice";
      ASSERT_EQ(page.slab_class, slab_class) << "slab changed its class";
    }
    ASSERT_EQ(handle.generation.value, ++last_generation_);
    ModelPage& page = pages_.emplace_back();
    page.handle = handle;
    page.slab_class = slab_class;
    page.pattern = random_.Below(~uint64_t{0});
    std::memcpy(handle.data + kPatternOffset, &page.pattern,
                sizeof(page.pattern));
  }

  // A random page in `state`, or nullptr.
  ModelPage* Pick(ModelPage::State state) {
    std::vector<ModelPage*> candidates;
    for (ModelPage& page : pages_) {
      if (page.state == state) candidates.push_back(&page);
    }
    if (candidates.empty()) return nullptr;
    return candidates[random_.Below(candidates.size())];
  }

  void Erase(const ModelPage* page) {
    stale_.push_back(page->handle);
    pages_.erase(pages_.begin() + (page - pages_.data()));
  }

  void Release() {
    ModelPage* page = Pick(ModelPage::State::kUsed);
    if (page == nullptr) return;
    ASSERT_TRUE(pool_.Release(page->handle).ok());
    page->state = ModelPage::State::kReleased;
    if (page->pins.empty()) Erase(page);
  }

  void Quarantine() {
    ModelPage* page = Pick(ModelPage::State::kUsed);
    if (page == nullptr) return;
    page->until = clock_.Now() + absl::Seconds(1 + random_.Below(8));
    ASSERT_TRUE(pool_.Quarantine(page->handle, page->until).ok());
    page->state = ModelPage::State::kQuarantined;
  }

  void Pin() {
    ModelPage* page = Pick(ModelPage::State::kUsed);
    if (page == nullptr) return;
    absl::StatusOr<PagePin> pin = pool_.Pin(page->handle);
    ASSERT_TRUE(pin.ok()) << pin.status();
    page->pins.push_back(*std::move(pin));
  }

  void Unpin() {
    std::vector<ModelPage*> candidates;
    for (ModelPage& page : pages_) {
      if (!page.pins.empty()) candidates.push_back(&page);
    }
    if (candidates.empty()) return;
    ModelPage* page = candidates[random_.Below(candidates.size())];
    page->pins.pop_back();
    if (page->pins.empty() && page->state == ModelPage::State::kReleased) {
      Erase(page);
    }
  }

  void UseStaleHandle() {
    if (stale_.empty()) return;
    const PageHandle& handle = stale_[random_.Below(stale_.size())];
    ASSERT_FALSE(pool_.Pin(handle).ok());
    ASSERT_FALSE(pool_.Release(handle).ok());
    ASSERT_FALSE(pool_.Quarantine(handle, clock_.Now()).ok());
  }

  void DropFinishedQuarantines() {
    for (size_t i = pages_.size(); i > 0; --i) {
      ModelPage& page = pages_[i - 1];
      if (page.state != ModelPage::State::kQuarantined) continue;
      if (page.until > clock_.Now()) continue;
      page.state = ModelPage::State::kReleased;
      if (page.pins.empty()) Erase(&page);
    }
  }

  RandomRun random_;
  ManualClock clock_;
  PagePool pool_;
  std::vector<ModelPage> pages_;  // not free
  std::vector<PageHandle> stale_;
  uint64_t last_generation_ = 0;  // of the whole pool
};

TEST(PagePoolModelTest, RandomOperationsAgreeWithTheModel) {
  for (uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(testing::Message() << "FARKV_TEST_SEED=" << seed);
    PagePoolModel model(seed);
    for (int step = 0; step < 3000; ++step) {
      model.Step();
      model.Check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    model.Finish();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace farkv

#include "gpu_worker/tiering/run_cache.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// Rows of a block whose slots are `slots`, from the row of `slot` on.
Run MakeRun(const KvGeometry& geometry, const std::byte* block, uint64_t slots,
            int slot, int length, RunSource source) {
  const auto block_rows = static_cast<size_t>(std::popcount(slots));
  const auto row =
      static_cast<size_t>(std::popcount(slots & SlotMask(0, slot)));
  Run run;
  run.keys = block + geometry.KeyOffset(block_rows, 0, row);
  run.values = block + geometry.ValueOffset(block_rows, 0, row);
  run.head_stride = geometry.HeadStride(block_rows);
  run.first_slot = static_cast<uint8_t>(slot);
  run.length = static_cast<uint8_t>(length);
  run.source = source;
  return run;
}

// That a block has the cold ones of `slots`.
absl::Status CheckCovered(int layer, const Page& page, uint64_t slots,
                          const ColdBlock* block) {
  const uint64_t covered = block == nullptr ? 0 : block->slots;
  const uint64_t missing = page.cold() & slots & ~covered;
  if (missing == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "layer ", layer, ", page ", page.index, ": the cold slots 0x",
      absl::Hex(missing), " are in no block; cold are 0x",
      absl::Hex(page.cold()), ", the block has 0x", absl::Hex(covered)));
}

}  // namespace

RunCache::RunCache(const KvGeometry& geometry)
    : geometry_(geometry), layers_(static_cast<size_t>(geometry.num_layers)) {}

absl::StatusOr<std::span<const PageRuns>> RunCache::Update(
    int layer, const PageTable& table, const T0Lines& lines,
    std::span<const ColdBlock> cold, std::span<const int32_t> elsewhere) {
  Layer& cached = layers_[static_cast<size_t>(layer)];
  const auto num_pages = static_cast<size_t>(table.num_pages());
  cached.built.resize(num_pages);
  cached.pages.resize(num_pages);
  cached.present.clear();
  auto next_cold = cold.begin();
  auto next_elsewhere = elsewhere.begin();
  for (size_t i = 0; i < num_pages; ++i) {
    const Page& page = table.page(static_cast<int>(i));
    if (next_elsewhere != elsewhere.end() && *next_elsewhere == page.index) {
      ++next_elsewhere;
      cached.built[i].version = 0;
      continue;
    }
    const ColdBlock* block = nullptr;
    if (next_cold != cold.end() && next_cold->page_index == page.index) {
      block = &*next_cold++;
    }
    FARKV_RETURN_IF_ERROR(CheckCovered(layer, page, ~uint64_t{0}, block));
    BuiltPage& built = cached.built[i];
    const std::byte* cold_rows = block == nullptr ? nullptr : block->rows;
    // Versions start at 1, so a page that was never built differs.
    if (built.version == page.version && built.cold_rows == cold_rows &&
        cached.pages[i].live != nullptr) {
      if (!elsewhere.empty()) cached.present.push_back(cached.pages[i]);
      continue;
    }
    built.version = page.version;
    built.cold_rows = cold_rows;
    built.runs.clear();
    Build(layer, page, lines, block, built.runs);
    cached.pages[i] = {
        page.index, page.layer_live(layer, geometry_.num_kv_heads), built.runs};
    if (!elsewhere.empty()) cached.present.push_back(cached.pages[i]);
  }
  return std::span<const PageRuns>(elsewhere.empty() ? cached.pages
                                                     : cached.present);
}

absl::StatusOr<std::span<const PageRuns>> RunCache::Select(
    int layer, const PageTable& table, const T0Lines& lines,
    std::span<const ColdBlock> cold, std::span<const SelectedPage> selected,
    std::span<const int32_t> elsewhere) {
  Layer& cached = layers_[static_cast<size_t>(layer)];
  cached.present.clear();
  cached.selected_runs.resize(
      std::max(cached.selected_runs.size(), selected.size()));
  auto next_cold = cold.begin();
  for (size_t i = 0; i < selected.size(); ++i) {
    const Page& page = table.page(selected[i].page_index);
    if (std::binary_search(elsewhere.begin(), elsewhere.end(), page.index)) {
      continue;
    }
    while (next_cold != cold.end() && next_cold->page_index < page.index) {
      ++next_cold;
    }
    const bool has_block =
        next_cold != cold.end() && next_cold->page_index == page.index;
    const ColdBlock* block = has_block ? &*next_cold : nullptr;
    FARKV_RETURN_IF_ERROR(CheckCovered(layer, page, selected[i].slots, block));
    std::vector<Run>& runs = cached.selected_runs[i];
    runs.clear();
    Build(layer, page, lines, block, runs);
    cached.present.push_back({page.index, selected[i].live.data(), runs});
  }
  return std::span<const PageRuns>(cached.present);
}

void RunCache::Build(int layer, const Page& page, const T0Lines& lines,
                     const ColdBlock* cold, std::vector<Run>& runs) const {
  const int g = lines.granularity();
  const uint64_t cold_slots = cold == nullptr ? 0 : page.cold() & cold->slots;
  for (int slot = 0; slot < kPageTokens;) {
    const uint64_t here = uint64_t{1} << slot;
    if ((page.written & here) == 0 ||
        ((page.resident | cold_slots) & here) == 0) {
      ++slot;
      continue;
    }
    if ((page.resident & here) != 0) {
      const int group = slot / g;
      const int left = (group + 1) * g - slot;
      const int length = std::min(left, std::countr_one(page.written >> slot));
      const std::byte* line =
          lines.Line(layer, page.lines[static_cast<size_t>(group)]);
      runs.push_back(MakeRun(geometry_, line, SlotMask(group * g, g), slot,
                             length, RunSource::kT0Line));
      slot += length;
    } else {
      const int length = std::countr_one(cold_slots >> slot);
      runs.push_back(MakeRun(geometry_, cold->rows, cold->slots, slot, length,
                             cold->source));
      slot += length;
    }
  }
}

}  // namespace farkv

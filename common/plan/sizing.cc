#include "common/plan/sizing.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/plan/cold_bytes.h"
#include "common/plan/t0_share.h"
#include "common/policy/placement.h"

namespace farkv {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 22;  // 65,536 pages
constexpr int64_t kMaxBatch = int64_t{1} << 16;
constexpr int kMaxNodes = 4096;
constexpr uint64_t kSlabBytes = uint64_t{64} << 20;  // DESIGN 13

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

PlacementSettings Settings(const Workload& workload, int32_t hbm_ratio) {
  PlacementSettings settings = workload.placement;
  settings.policy = PlacementPolicy::kRandom;
  settings.hbm_ratio = hbm_ratio;
  return settings;
}

uint64_t ShareBytes(const KvGeometry& geometry, const Workload& workload,
                    int32_t hbm_ratio) {
  const auto sets = static_cast<uint64_t>(
      T0ShareInSets(Settings(workload, hbm_ratio), workload.prompt_tokens,
                    workload.tokens, /*has_nodes=*/true));
  return sets * T0SetBytes(geometry, workload.placement.granularity);
}

// The largest at which T0 holds the batch; 0 where not even that does.
int32_t RatioThatFits(const KvGeometry& geometry, const Workload& workload) {
  const auto batch = static_cast<uint64_t>(workload.batch);
  int32_t fits = 0, fails = kRatioOne + 1;
  while (fails - fits > 1) {
    const int32_t ratio = (fits + fails) / 2;
    const uint64_t bytes = ShareBytes(geometry, workload, ratio);
    (bytes <= workload.t0_bytes / batch ? fits : fails) = ratio;
  }
  return fits;
}

absl::Status SizeT0(const KvGeometry& geometry, const Workload& workload,
                    Sizes& sizes) {
  const auto batch = static_cast<uint64_t>(workload.batch);
  const bool bounded = workload.t0_bytes > 0;
  if (workload.hbm_ratio) {
    sizes.hbm_ratio = *workload.hbm_ratio;
  } else {
    sizes.hbm_ratio = bounded ? RatioThatFits(geometry, workload)
                              : workload.placement.hbm_ratio;
  }
  sizes.t0_share_bytes = ShareBytes(geometry, workload, sizes.hbm_ratio);
  sizes.t0_bytes = bounded ? workload.t0_bytes : batch * sizes.t0_share_bytes;
  const int granularity = workload.placement.granularity;
  sizes.t0_tokens =
      static_cast<int64_t>(sizes.t0_bytes / T0SetBytes(geometry, granularity) *
                           static_cast<uint64_t>(granularity));
  sizes.fitting = static_cast<int64_t>(sizes.t0_bytes / sizes.t0_share_bytes);
  sizes.running = std::min(workload.batch, sizes.fitting);
  if (sizes.fitting > 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("T0 has ", FormatBytes(sizes.t0_bytes),
                   ", and one sequence of ", workload.tokens,
                   " tokens is promised ", FormatBytes(sizes.t0_share_bytes),
                   " of it at an HBM ratio of ", sizes.hbm_ratio / 10000.0));
}

// Which rows of each page are outside T0, as a placement plan leaves them.
struct PageRows {
  int32_t page = 0;
  int64_t rows = 0;  // of a layer and head that exist
  int64_t cold = 0;
};

absl::StatusOr<std::vector<PageRows>> PlacePages(const Workload& workload,
                                                 int32_t hbm_ratio,
                                                 TierSplit& split) {
  const auto tokens = static_cast<size_t>(workload.tokens);
  const std::vector<int64_t> scores(tokens, 0);
  const std::vector<Tier> tiers(tokens, Tier::kT0);
  PlacementInput input;
  input.scores = scores;
  input.tiers = tiers;
  input.prompt_tokens = workload.prompt_tokens;
  input.sealed_tokens = SealedTokens(workload.tokens);
  FARKV_ASSIGN_OR_RETURN(const PlacementPlan plan,
                         PlanPlacement(Settings(workload, hbm_ratio), input));
  split.protected_tokens = plan.protected_tokens;
  std::vector<PageRows> pages;
  for (int64_t first = 0; first < workload.tokens; first += kPageTokens) {
    PageRows page;
    page.page = static_cast<int32_t>(first / kPageTokens);
    page.rows = std::min<int64_t>(kPageTokens, workload.tokens - first);
    for (int64_t at = first; at < first + page.rows; at += plan.granularity) {
      if (plan.tiers[static_cast<size_t>(at / plan.granularity)] == Tier::kT0) {
        continue;
      }
      page.cold += std::min<int64_t>(plan.granularity, first + page.rows - at);
    }
    pages.push_back(page);
  }
  return pages;
}

// Adds one cold page; `t2`: it lies compressed.
void AddColdPage(const KvGeometry& geometry, const Workload& workload,
                 const PageRows& page, bool t2, ColdStep& step) {
  const auto layers = static_cast<uint64_t>(geometry.num_layers);
  const Tier tier = t2 ? Tier::kT2 : Tier::kT1;
  const auto rows = static_cast<uint64_t>(page.rows);
  const auto cold = static_cast<uint64_t>(page.cold);
  const auto bytes = [&](uint64_t count, bool checksums) {
    return FetchBytes(geometry, tier, workload.t2_bits, count, checksums);
  };
  step.mapped_bytes += layers * bytes(cold, false);
  step.fetch_bytes += layers * bytes(cold, true);
  step.layer_fetch_bytes += bytes(cold, false);
  step.attend_rows +=
      layers * rows * static_cast<uint64_t>(geometry.num_kv_heads);
  step.attend_bytes += layers * bytes(rows, false);
}

void SizeStep(const ModelShape& shape, const Workload& workload,
              const std::vector<PageRows>& pages, Sizes& sizes) {
  const KvGeometry geometry = shape.Geometry(workload.kv_dtype);
  TierSplit& split = sizes.split;
  ColdStep& step = sizes.step;
  int64_t outside = 0;
  for (const PageRows& page : pages) outside += page.cold;
  // Whole pages only, and only those that T0 has nothing of.
  int64_t t2_left = ShareOf(workload.t2_ratio, outside) / kPageTokens;
  std::vector<int32_t> cold_pages;
  for (const PageRows& page : pages) {
    if (page.cold == 0) {
      step.own_tokens += page.rows;
      continue;
    }
    const bool t2 = page.cold == kPageTokens && t2_left > 0;
    if (t2) {
      --t2_left;
      ++split.t2_pages;
    }
    cold_pages.push_back(page.page);
    AddColdPage(geometry, workload, page, t2, step);
  }
  split.cold_pages = static_cast<int64_t>(cold_pages.size());
  split.t2 = split.t2_pages * kPageTokens;
  split.t1 = outside - split.t2;
  split.t0 = workload.tokens - outside;
  if (cold_pages.empty()) return;
  step.subtrees = CountSubtrees(cold_pages);
  step.message_bytes =
      static_cast<uint64_t>(geometry.num_layers) *
      AttendMessageBytes(geometry, shape.num_query_heads,
                         static_cast<uint64_t>(step.subtrees),
                         static_cast<uint64_t>(split.cold_pages));
}

// Of one node that holds `pages` of `page_bytes` each: room for them below the
// watermark, in whole slabs, and one slab more.
uint64_t PoolBytes(uint64_t pages, uint64_t page_bytes, int32_t watermark) {
  if (pages == 0) return 0;
  const uint64_t slabs =
      std::max(DivideUp(pages, kSlabBytes / page_bytes),
               DivideUp(pages * page_bytes,
                        kSlabBytes * static_cast<uint64_t>(watermark) /
                            uint64_t{kRatioOne}));
  return (slabs + 1) * kSlabBytes;
}

void SizeNodes(const KvGeometry& geometry, const Workload& workload,
               Sizes& sizes) {
  const auto layers = static_cast<uint64_t>(geometry.num_layers);
  const auto nodes = static_cast<uint64_t>(workload.nodes);
  const auto held = static_cast<uint64_t>(sizes.running * workload.replicas);
  const uint64_t on_one = DivideUp(held, nodes);
  sizes.sequences_per_node = static_cast<int64_t>(
      DivideUp(static_cast<uint64_t>(sizes.running), nodes));
  sizes.t1_page_bytes = PageLayout::T1(geometry).stride;
  sizes.t2_page_bytes = PageLayout::T2(geometry, workload.t2_bits).stride;
  sizes.pages = (workload.tokens + kPageTokens - 1) / kPageTokens;
  const uint64_t t1_pages =
      layers * static_cast<uint64_t>(sizes.pages - sizes.split.t2_pages);
  const uint64_t t2_pages =
      layers * static_cast<uint64_t>(sizes.split.t2_pages);
  sizes.t1_bytes = held * t1_pages * sizes.t1_page_bytes;
  sizes.t2_bytes = held * t2_pages * sizes.t2_page_bytes;
  sizes.t1_pool_bytes =
      nodes * PoolBytes(on_one * t1_pages, sizes.t1_page_bytes,
                        workload.high_watermark);
  sizes.t2_pool_bytes =
      nodes * PoolBytes(on_one * t2_pages, sizes.t2_page_bytes,
                        workload.high_watermark);
  const uint64_t page_bytes =
      FetchBytes(geometry, Tier::kT1, 0, uint64_t{kPageTokens});
  sizes.store_bytes_per_step = static_cast<double>(held * layers) *
                               static_cast<double>(page_bytes) / kPageTokens;
}

// As a memory node; and everything below is counted in 64 bits.
absl::Status CheckSizes(const KvGeometry& geometry, const Workload& workload) {
  const uint64_t page_bytes = PageLayout::T1(geometry).stride;
  if (page_bytes > kSlabBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page of one layer takes ", page_bytes,
                     " bytes, a slab of a memory node has ", kSlabBytes));
  }
  const double bytes = static_cast<double>(geometry.num_layers) *
                       static_cast<double>(page_bytes) *
                       static_cast<double>(workload.tokens) *
                       static_cast<double>(workload.batch) *
                       static_cast<double>(workload.replicas);
  if (bytes > 9e18) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rows of ", workload.batch, " sequences of ",
                     workload.tokens, " tokens take more than 2^63 bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Workload::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("tokens", tokens, 1, kMaxTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("prompt_tokens", prompt_tokens, 1, tokens));
  FARKV_RETURN_IF_ERROR(CheckRange("batch", batch, 1, kMaxBatch));
  if (hbm_ratio) {
    FARKV_RETURN_IF_ERROR(CheckRange("hbm_ratio", *hbm_ratio, 0, kRatioOne));
  }
  FARKV_RETURN_IF_ERROR(placement.Validate());
  FARKV_RETURN_IF_ERROR(CheckRange("t2_ratio", t2_ratio, 0, kRatioOne));
  if (t2_bits != 8 && t2_bits != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("t2_bits is ", t2_bits, ", must be 8 or 4"));
  }
  FARKV_RETURN_IF_ERROR(CheckRange("nodes", nodes, 1, kMaxNodes));
  FARKV_RETURN_IF_ERROR(CheckRange("replicas", replicas, 1, nodes));
  return CheckRange("high_watermark", high_watermark, 1, kRatioOne);
}

absl::StatusOr<Sizes> SizesOf(const ModelShape& shape,
                              const Workload& workload) {
  FARKV_RETURN_IF_ERROR(shape.Validate());
  FARKV_RETURN_IF_ERROR(workload.Validate());
  const KvGeometry geometry = shape.Geometry(workload.kv_dtype);
  FARKV_RETURN_IF_ERROR(CheckSizes(geometry, workload));
  Sizes sizes;
  sizes.token_bytes =
      static_cast<uint64_t>(geometry.num_layers) * geometry.BlockBytes(1);
  sizes.sequence_bytes =
      static_cast<uint64_t>(workload.tokens) * sizes.token_bytes;
  FARKV_RETURN_IF_ERROR(SizeT0(geometry, workload, sizes));
  FARKV_ASSIGN_OR_RETURN(const std::vector<PageRows> pages,
                         PlacePages(workload, sizes.hbm_ratio, sizes.split));
  SizeStep(shape, workload, pages, sizes);
  SizeNodes(geometry, workload, sizes);
  return sizes;
}

}  // namespace farkv

#include "common/plan/step_time.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/plan/cold_bytes.h"

namespace farkv {
namespace {

using absl::Duration;
using Share = std::pair<Bottleneck, Duration>;

uint64_t Times(int64_t count, uint64_t amount) {
  return static_cast<uint64_t>(count) * amount;
}

Bottleneck Largest(const std::vector<Share>& shares) {
  return std::max_element(
             shares.begin(), shares.end(),
             [](const Share& a, const Share& b) { return a.second < b.second; })
      ->first;
}

class StepPlanner {
 public:
  StepPlanner(const ModelShape& shape, const Sizes& sizes, const Rates& rates)
      : shape_(shape), sizes_(sizes), rates_(rates) {
    t0_bytes_ = Times(sizes.running * sizes.split.t0, sizes.token_bytes);
    cold_bytes_ = Times(sizes.running, sizes.step.mapped_bytes);
    work_.layers = shape.num_layers;
    work_.fetch_bytes = Times(sizes.running, sizes.step.fetch_bytes);
    work_.attend_rows = Times(sizes.sequences_per_node, sizes.step.attend_rows);
    work_.message_bytes = Times(sizes.running, sizes.step.message_bytes);
    figures_.link_bytes_per_second = rates.link_bytes_per_second;
    figures_.round_trip = rates.round_trip;
    figures_.attend_rows_per_second =
        rates.node_bytes_per_second *
        static_cast<double>(sizes.step.attend_rows) /
        static_cast<double>(std::max<uint64_t>(sizes.step.attend_bytes, 1));
  }

  ModeTime FullCache() const {
    std::vector<Share> own = Own(1);
    AddAttention(Times(sizes_.running, sizes_.sequence_bytes), own);
    return InPlace(StepMode::kFullCache, own);
  }

  ModeTime Map() const {
    std::vector<Share> own = Own(1);
    AddAttention(t0_bytes_, own);
    own.emplace_back(Bottleneck::kMap,
                     TimeFor(cold_bytes_, rates_.mapped_bytes_per_second));
    return InPlace(StepMode::kMap, own);
  }

  ModeTime Prefetch() const {
    ModeTime time;
    time.mode = StepMode::kPrefetch;
    time.link_bytes = work_.fetch_bytes;
    time.parts = Parts();
    if (time.parts == 0) {
      time.possible = false;
      time.bottleneck = Bottleneck::kLink;
      time.step = time.without_overlap = absl::InfiniteDuration();
      return time;
    }
    std::vector<Share> own = Own(time.parts);
    AddAttention(t0_bytes_ + cold_bytes_, own);
    OwnTimes own_times;
    own_times.fetching = Sum(own);
    const ColdCosts costs = CostsOf(work_, figures_);
    const double staged = StagedShare(time.parts);
    const Duration trips =
        work_.fetch_bytes == 0
            ? absl::ZeroDuration()
            : time.parts * shape_.num_layers * rates_.round_trip /
                  std::min(kPrefetchLayers, shape_.num_layers);
    const ColdCosts ahead{std::max(costs.fetch * staged, trips), {}};
    const Duration step =
        StepTimesOf(work_, ahead, own_times).fetch + costs.fetch * (1 - staged);
    time.own = own_times.fetching;
    time.waits = step - own_times.fetching;
    if (time.waits > own_times.fetching || ahead.fetch > own_times.fetching) {
      own = {{Bottleneck::kLink, costs.fetch},
             {Bottleneck::kRoundTrips, trips}};
    }
    time.bottleneck = Largest(own);
    Finish(step, own_times.fetching + costs.fetch + trips, time);
    return time;
  }

  // As the worker weighs the two; without stores.
  StepTimes Weighed(const ModeTime& prefetch, const ModeTime& pushdown) const {
    const ColdCosts costs = CostsOf(work_, figures_);
    OwnTimes own;
    own.fetching = prefetch.own;
    StepTimes step = StepTimesOf(work_, costs, own);
    step.push = pushdown.own + pushdown.waits;
    return step;
  }

  ModeTime Pushdown() const {
    ModeTime time;
    time.mode = StepMode::kPushdown;
    time.link_bytes = work_.message_bytes;
    ColdWork work = work_;
    if (work.attend_rows == 0) work.layers = 0;  // nobody is asked
    std::vector<Share> own = Own(1);
    AddAttention(
        Times(sizes_.running * sizes_.step.own_tokens, sizes_.token_bytes),
        own);
    const Duration leaves = own.back().second;
    const ColdCosts costs = CostsOf(work, figures_);
    OwnTimes own_times;
    own_times.pushing = Sum(own);
    own_times.visible_push =
        costs.push > leaves
            ? absl::FDivDuration(costs.push - leaves, costs.push)
            : 0;
    const StepTimes step = StepTimesOf(work, costs, own_times);
    std::vector<Share> shares = own;
    if (costs.push > leaves) {
      shares.pop_back();
      AddPush(work, shares);
    }
    time.bottleneck = Largest(shares);
    time.own = own_times.pushing;
    time.waits = step.push - own_times.pushing;
    Finish(step.push, own_times.pushing + costs.push, time);
    return time;
  }

 private:
  // Overhead and products of a step that runs in `parts`.
  std::vector<Share> Own(int parts) const {
    const Duration read =
        parts * TimeFor(rates_.weight_bytes, rates_.weight_bytes_per_second);
    const Duration computed =
        absl::Seconds(2 * static_cast<double>(sizes_.running) *
                      static_cast<double>(shape_.NumProductWeights()) /
                      rates_.flops_per_second);
    const bool reads = read >= computed;
    return {{Bottleneck::kOverhead, parts * rates_.overhead},
            {reads ? Bottleneck::kWeights : Bottleneck::kProducts,
             std::max(read, computed)}};
  }

  void AddAttention(uint64_t bytes, std::vector<Share>& shares) const {
    shares.emplace_back(Bottleneck::kAttention,
                        TimeFor(bytes, rates_.attention_bytes_per_second));
  }

  void AddPush(const ColdWork& work, std::vector<Share>& shares) const {
    shares.emplace_back(Bottleneck::kRoundTrips,
                        work.layers * rates_.round_trip);
    shares.emplace_back(
        Bottleneck::kLink,
        TimeFor(work.message_bytes, rates_.link_bytes_per_second));
    shares.emplace_back(
        Bottleneck::kNodeMemory,
        TimeFor(work.attend_rows, figures_.attend_rows_per_second));
  }

  static Duration Sum(const std::vector<Share>& shares) {
    Duration sum;
    for (const Share& share : shares) sum += share.second;
    return sum;
  }

  static ModeTime InPlace(StepMode mode, const std::vector<Share>& own) {
    ModeTime time;
    time.mode = mode;
    time.step = time.without_overlap = time.own = Sum(own);
    time.bottleneck = Largest(own);
    return time;
  }

  // Halves and halves again, until a layer of a part fits; 0: that of a single
  // sequence does not.
  int Parts() const {
    const uint64_t bytes = sizes_.step.layer_fetch_bytes;
    int64_t sequences = sizes_.sequences_per_node;
    int parts = 1;
    while (Times(sequences, bytes) > kMaxLayerFetchBytes) {
      if (sequences <= 1) return 0;
      sequences = (sequences + 1) / 2;
      parts *= 2;
    }
    return parts;
  }

  // Of the bytes of a layer, those that have room ahead of it.
  double StagedShare(int parts) const {
    const uint64_t bytes = Times((sizes_.running + parts - 1) / parts,
                                 sizes_.step.layer_fetch_bytes);
    if (bytes <= kStagingBytes / 2) return 1;
    if (bytes >= kStagingBytes) return 0;
    return static_cast<double>(kStagingBytes - bytes) /
           static_cast<double>(bytes);
  }

  void Finish(Duration step, Duration without_overlap, ModeTime& time) const {
    const Duration stores = absl::Seconds(sizes_.store_bytes_per_step /
                                          rates_.link_bytes_per_second);
    if (stores > step) time.bottleneck = Bottleneck::kStores;
    time.step = std::max(step, stores);
    time.without_overlap = without_overlap;
  }

  const ModelShape& shape_;
  const Sizes& sizes_;
  const Rates& rates_;
  uint64_t t0_bytes_ = 0, cold_bytes_ = 0;  // that attention reads in a step
  ColdWork work_;  // of the node that has most; bytes are those of all
  NodeFigures figures_;
};

void Choose(const Sizes& sizes, const ModeSettings& settings, StepPlan& plan) {
  if (sizes.split.cold_pages == 0) {
    plan.chosen = StepMode::kFullCache;
    plan.reason = "T0 holds every row";
  } else if (settings.mapped) {
    plan.chosen = StepMode::kMap;
    plan.reason = "mapped: rows are read in place";
  } else if (!settings.pushdown_allowed) {
    plan.chosen = StepMode::kPrefetch;
    plan.reason = "exactness: nodes would round otherwise than this device";
  } else if (!plan.prefetch.possible) {
    plan.chosen = StepMode::kPushdown;
    plan.reason = "one sequence has more to fetch than a worker takes in";
  } else {
    const bool push = BetterPushedDown(plan.weighed, false);
    plan.chosen = push ? StepMode::kPushdown : StepMode::kPrefetch;
    plan.reason = absl::StrFormat(
        "rates: %.4g ms pushed down against %.4g ms fetched, which it must "
        "beat "
        "by a tenth",
        absl::ToDoubleMilliseconds(plan.weighed.push),
        absl::ToDoubleMilliseconds(plan.weighed.fetch));
  }
}

}  // namespace

absl::StatusOr<StepPlan> PlanStep(const ModelShape& shape, const Sizes& sizes,
                                  const Rates& rates,
                                  const ModeSettings& settings) {
  FARKV_RETURN_IF_ERROR(rates.Validate());
  const StepPlanner planner(shape, sizes, rates);
  StepPlan plan;
  plan.full = planner.FullCache();
  plan.map = planner.Map();
  plan.prefetch = planner.Prefetch();
  plan.pushdown = planner.Pushdown();
  plan.weighed = planner.Weighed(plan.prefetch, plan.pushdown);
  Choose(sizes, settings, plan);
  return plan;
}

}  // namespace farkv

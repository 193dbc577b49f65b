#include "common/policy/eviction_merge.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

using HeadName = std::pair<int32_t, int32_t>;
using RowsByHead = std::map<HeadName, std::vector<EvictionRow>>;

template <typename T>
std::vector<T> Part(const std::vector<T>& all, size_t first, size_t count) {
  if (all.empty()) return {};
  const auto begin = all.begin() + static_cast<ptrdiff_t>(first);
  return {begin, begin + static_cast<ptrdiff_t>(count)};
}

// Fills calls one after the other.
class Splitter {
 public:
  Splitter(const EvictionCall& call, size_t limit)
      : header_(call), limit_(limit) {
    header_.heads.clear();
  }

  absl::Status AddWhole(const EvictionHead& head) {
    const size_t rows =
        std::max(head.positions.size(), head.always_kept.size());
    if (rows > limit_) {
      return absl::InvalidArgumentError(
          absl::StrCat(HeadPrefix(head), rows, " rows of one head, at most ",
                       limit_, " in one call that decides"));
    }
    if (candidates_ + head.positions.size() > limit_ ||
        kept_ + head.always_kept.size() > limit_) {
      Start();
    }
    Append(head);
    return absl::OkStatus();
  }

  // Rows that are always kept are left out: they are ranked by nobody.
  void AddInParts(const EvictionHead& head) {
    size_t first = 0;
    while (first < head.positions.size()) {
      if (candidates_ == limit_) Start();
      const size_t count =
          std::min(limit_ - candidates_, head.positions.size() - first);
      Append({.layer = head.layer,
              .kv_head = head.kv_head,
              .positions = Part(head.positions, first, count),
              .mass = Part(head.mass, first, count),
              .cumulative = Part(head.cumulative, first, count),
              .always_kept = {}});
      first += count;
    }
  }

  std::vector<EvictionCall> Take() { return std::move(calls_); }

 private:
  void Start() {
    calls_.push_back(header_);
    candidates_ = 0;
    kept_ = 0;
  }
  void Append(EvictionHead head) {
    if (calls_.empty()) Start();
    candidates_ += head.positions.size();
    kept_ += head.always_kept.size();
    calls_.back().heads.push_back(std::move(head));
  }

  EvictionCall header_;
  const size_t limit_;
  std::vector<EvictionCall> calls_;
  size_t candidates_ = 0, kept_ = 0;  // of the last call
};

// The ranked rows are exactly the head's candidates; sorts them.
absl::Status CheckComplete(const EvictionHead& head,
                           std::vector<EvictionRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.position < b.position;
  });
  const bool same = std::equal(rows.begin(), rows.end(), head.positions.begin(),
                               head.positions.end(),
                               [](const EvictionRow& row, int64_t position) {
                                 return row.position == position;
                               });
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(HeadPrefix(head), rows.size(), " rows were ranked for ",
                   head.positions.size(), " candidates, or others than these"));
}

RowsByHead Collect(std::span<const EvictionReply> replies) {
  RowsByHead rows;
  for (const EvictionReply& reply : replies) {
    for (const RankedHead& head : reply.heads) {
      auto& all = rows[{head.layer, head.kv_head}];
      all.insert(all.end(), head.rows.begin(), head.rows.end());
    }
  }
  return rows;
}

int64_t RowsKeptByMeasure(const EvictionCall& event, const EvictionHead& head) {
  const HeadRows rows = HeadRows::Of(head);
  EvictionInput input;
  input.positions = rows.positions;
  input.num_tokens = event.num_tokens;
  input.num_kept = event.num_kept;
  return NumByMeasure(event.policy, input);
}

absl::StatusOr<EvictionDecision> MergeHead(const EvictionCall& event,
                                           const EvictionHead& head,
                                           std::vector<EvictionRow> rows) {
  FARKV_RETURN_IF_ERROR(CheckComplete(head, rows));
  for (const int64_t position : head.always_kept) {
    rows.push_back({.position = position, .pinned = true});
  }
  const std::span<const EvictionRow> all = rows;
  return MergeDecisions({&all, 1}, RowsKeptByMeasure(event, head),
                        event.num_kept);
}

}  // namespace

absl::StatusOr<std::vector<EvictionCall>> SplitCall(const EvictionCall& call,
                                                    int64_t max_candidates) {
  Splitter splitter(call, static_cast<size_t>(max_candidates));
  for (const EvictionHead& head : call.heads) {
    if (call.final_list) {
      FARKV_RETURN_IF_ERROR(splitter.AddWhole(head));
    } else {
      splitter.AddInParts(head);
    }
  }
  return splitter.Take();
}

absl::StatusOr<std::vector<EvictionDecision>> MergeReplies(
    const EvictionCall& event, std::span<const EvictionReply> replies) {
  if (!NeedsOf(event.policy).rows_alone) {
    return absl::FailedPreconditionError(
        absl::StrCat("rows ranked by ", DestructionPolicyName(event.policy),
                     " for several parties cannot be merged"));
  }
  RowsByHead rows = Collect(replies);
  std::vector<EvictionDecision> decisions;
  decisions.reserve(event.heads.size());
  for (const EvictionHead& head : event.heads) {
    FARKV_ASSIGN_OR_RETURN(
        EvictionDecision decision,
        MergeHead(event, head,
                  std::move(rows[HeadName(head.layer, head.kv_head)])));
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

}  // namespace farkv

#include "memory_node/data/attend_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "kernels/attention.h"

namespace farkv {
namespace {

// What true globals are: m is the largest logit of all leaves, so l counts at
// least that one. Others could overflow the sums.
absl::Status CheckGlobals(const AttendGlobals& globals,
                          const KeptLeaves& leaves) {
  const size_t heads = globals.m.size();
  if (leaves.m.size() != leaves.pages.size() * heads ||
      globals.l.size() != heads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "globals of step ", globals.step, " have ", heads,
        " query heads, the step had ",
        leaves.m.size() / std::max<size_t>(1, leaves.pages.size())));
  }
  for (size_t i = 0; i < leaves.m.size(); ++i) {
    const float m = globals.m[i % heads];
    const float l = globals.l[i % heads];
    if (leaves.m[i] == -std::numeric_limits<float>::infinity()) continue;
    if (m >= leaves.m[i] && l >= 1.0f && std::isfinite(m) && std::isfinite(l)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "globals of step ", globals.step, ", query head ", i % heads, ": m is ",
        m, ", l is ", l, "; a leaf's m is ", leaves.m[i]));
  }
  return absl::OkStatus();
}

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Leaves of pages that are there already: a request came again.
void DropPages(KeptLeaves& leaves, const std::vector<int32_t>& there) {
  const absl::flat_hash_set<int32_t> known(there.begin(), there.end());
  KeptLeaves fresh;
  fresh.step = leaves.step;
  const size_t pages = leaves.pages.size();
  for (size_t i = 0; i < pages; ++i) {
    if (known.contains(leaves.pages[i])) continue;
    fresh.pages.push_back(leaves.pages[i]);
    const auto copy = [&](const std::vector<float>& from,
                          std::vector<float>& to) {
      const auto each = static_cast<ptrdiff_t>(from.size() / pages);
      const auto first = from.begin() + static_cast<ptrdiff_t>(i) * each;
      to.insert(to.end(), first, first + each);
    };
    copy(leaves.weights, fresh.weights);
    copy(leaves.m, fresh.m);
  }
  leaves = std::move(fresh);
}

}  // namespace

std::shared_ptr<AttendScores::SessionScores> AttendScores::FindOrAdd(
    uint64_t session) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<SessionScores>& found = sessions_[session];
  if (found == nullptr) found = std::make_shared<SessionScores>();
  return found;
}

absl::Status AttendScores::ApplyLocked(SessionScores& scores, int32_t layer,
                                       const KvGeometry& geometry,
                                       const AttendGlobals& globals) {
  const auto found = scores.kept.find(layer);
  if (found == scores.kept.end() || found->second.step != globals.step) {
    return absl::OkStatus();
  }
  FARKV_RETURN_IF_ERROR(CheckGlobals(globals, found->second));
  const KeptLeaves leaves = std::move(found->second);
  scores.applied[layer] = leaves.step;
  scores.kept.erase(found);
  kept_bytes_ -= leaves.bytes();
  const size_t heads = globals.m.size();
  AttentionArgs args;
  args.geometry = geometry;
  args.num_query_heads = static_cast<int32_t>(heads);
  for (size_t i = 0; i < leaves.pages.size(); ++i) {
    PageScores& page = scores.sums[leaves.pages[i]];
    page.page_index = leaves.pages[i];
    AddLeafScores(args, leaves.weights.data() + i * heads * kPageTokens,
                  leaves.m.data() + i * heads, globals.m.data(),
                  globals.l.data(), page.sums.data());
  }
  return absl::OkStatus();
}

absl::Status AttendScores::Apply(uint64_t session, int32_t layer,
                                 const KvGeometry& geometry,
                                 const AttendGlobals& globals) {
  const std::shared_ptr<SessionScores> scores = FindOrAdd(session);
  absl::MutexLock lock(&scores->mutex);
  return ApplyLocked(*scores, layer, geometry, globals);
}

bool AttendScores::Keep(uint64_t session, int32_t layer, KeptLeaves leaves) {
  const std::shared_ptr<SessionScores> scores = FindOrAdd(session);
  absl::MutexLock lock(&scores->mutex);
  if (scores->forgotten) return true;
  const auto applied = scores->applied.find(layer);
  if (applied != scores->applied.end() && leaves.step <= applied->second) {
    return true;
  }
  const auto found = scores->kept.find(layer);
  if (found != scores->kept.end() && found->second.step == leaves.step) {
    DropPages(leaves, found->second.pages);
  } else if (found != scores->kept.end()) {
    if (found->second.step > leaves.step) return true;
    kept_bytes_ -= found->second.bytes();
    scores->kept.erase(found);
  }
  const size_t bytes = leaves.bytes();
  if (kept_bytes_ + bytes > max_bytes_) return false;
  kept_bytes_ += bytes;
  KeptLeaves& kept = scores->kept[layer];
  if (kept.pages.empty()) {
    kept = std::move(leaves);
  } else {
    Append(leaves.pages, kept.pages);
    Append(leaves.weights, kept.weights);
    Append(leaves.m, kept.m);
  }
  return true;
}

absl::StatusOr<std::vector<PageScores>> AttendScores::Collect(
    uint64_t session, const KvGeometry& geometry,
    const ScoresRequest& request) {
  const std::shared_ptr<SessionScores> scores = FindOrAdd(session);
  absl::MutexLock lock(&scores->mutex);
  if (request.collection < scores->collection) {
    return absl::FailedPreconditionError(
        absl::StrCat("collection ", request.collection, " of scores follows ",
                     scores->collection));
  }
  if (request.collection == scores->collection) return scores->answer;
  for (const ScoresRequest::Layer& layer : request.layers) {
    FARKV_RETURN_IF_ERROR(
        ApplyLocked(*scores, layer.layer, geometry, layer.globals));
  }
  std::vector<PageScores> answer;
  for (const int32_t page : request.pages) {
    const auto found = scores->sums.find(page);
    if (found == scores->sums.end()) continue;
    answer.push_back(found->second);
    scores->sums.erase(found);
  }
  scores->collection = request.collection;
  scores->answer = answer;
  return answer;
}

void AttendScores::ForgetClosed(
    absl::FunctionRef<absl::flat_hash_set<uint64_t>()> open) {
  std::vector<uint64_t> ids;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, scores] : sessions_) ids.push_back(id);
  }
  if (ids.empty()) return;
  const absl::flat_hash_set<uint64_t> kept = open();
  for (const uint64_t id : ids) {
    if (kept.contains(id)) continue;
    std::shared_ptr<SessionScores> gone;
    {
      absl::MutexLock lock(&mutex_);
      const auto found = sessions_.find(id);
      if (found == sessions_.end()) continue;
      gone = std::move(found->second);
      sessions_.erase(found);
    }
    absl::MutexLock lock(&gone->mutex);
    gone->forgotten = true;
    for (const auto& [layer, leaves] : gone->kept) {
      kept_bytes_ -= leaves.bytes();
    }
    gone->kept.clear();
  }
}

size_t AttendScores::num_sessions() const {
  absl::MutexLock lock(&mutex_);
  return sessions_.size();
}

}  // namespace farkv

#include "gpu_worker/tiering/t0_lines.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/parse.h"
#include "common/plan/t0_share.h"

namespace farkv {

absl::StatusOr<T0Lines> T0Lines::Create(Device& device,
                                        const KvGeometry& geometry,
                                        int granularity, uint64_t t0_bytes) {
  T0Lines lines;
  lines.granularity_ = granularity;
  lines.line_bytes_ = T0LineBytes(geometry, granularity);
  lines.set_bytes_ = T0SetBytes(geometry, granularity);
  const uint64_t num_sets = std::min<uint64_t>(
      t0_bytes / lines.set_bytes_, std::numeric_limits<LineSetId>::max());
  if (num_sets == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--t0-bytes is ", FormatBytes(t0_bytes), ", but one line of ",
        granularity, " positions for each of the layers (", geometry.ToString(),
        ") takes ", FormatBytes(lines.set_bytes_)));
  }
  absl::StatusOr<DeviceBuffer> memory =
      device.Allocate(num_sets * lines.set_bytes_);
  if (!memory.ok()) return memory.status();
  lines.memory_ = *std::move(memory);
  lines.num_sets_ = static_cast<int64_t>(num_sets);
  lines.taken_.assign(num_sets, false);
  lines.free_.reserve(num_sets);
  for (auto set = static_cast<LineSetId>(num_sets); set-- > 0;) {
    lines.free_.push_back(set);
  }
  return lines;
}

LineSetId T0Lines::Allocate() {
  if (free_.empty()) return kNoLineSet;
  const LineSetId set = free_.back();
  free_.pop_back();
  taken_[static_cast<size_t>(set)] = true;
  return set;
}

void T0Lines::Free(LineSetId set) {
  const auto index = static_cast<size_t>(set);
  if (set < 0 || index >= taken_.size() || !taken_[index]) return;
  taken_[index] = false;
  free_.push_back(set);
}

bool T0Lines::TryReserve(int64_t num_sets) {
  if (num_sets > num_sets_ - reserved_) return false;
  reserved_ += num_sets;
  return true;
}

void T0Lines::Release(int64_t num_sets) { reserved_ -= num_sets; }

std::byte* T0Lines::Line(int layer, LineSetId set) const {
  const auto index =
      static_cast<size_t>(layer) * static_cast<size_t>(num_sets_) +
      static_cast<size_t>(set);
  return memory_.data() + index * line_bytes_;
}

}  // namespace farkv

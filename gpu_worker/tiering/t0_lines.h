// The T0 memory of one worker: one allocation, cut into lines (DESIGN 5.2).
//
// Every layer of a group of g positions shares one placement decision, so
// lines are handed out as line sets: one line per layer for the same g
// positions. Lines of one layer lie side by side, so that sets taken in order
// are read in order.
//
// Thread-compatible: the engine thread owns it.
#ifndef FARKV_GPU_WORKER_TIERING_T0_LINES_H_
#define FARKV_GPU_WORKER_TIERING_T0_LINES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/kv_geometry.h"
#include "kernels/stream.h"

namespace farkv {

// One line per layer; kNoLineSet where a group has none.
using LineSetId = int32_t;
inline constexpr LineSetId kNoLineSet = -1;

class T0Lines {
 public:
  // Takes `t0_bytes` of `device`, which must outlive the lines.
  // INVALID_ARGUMENT when not even one line set fits.
  static absl::StatusOr<T0Lines> Create(Device& device,
                                        const KvGeometry& geometry,
                                        int granularity, uint64_t t0_bytes);

  // kNoLineSet when none is free.
  LineSetId Allocate();
  void Free(LineSetId set);

  // Sets promised to admitted sequences. A promise is an account, not memory:
  // a sequence may use more while others use less.
  bool TryReserve(int64_t num_sets);
  void Release(int64_t num_sets);

  // Device address of the line of `layer`.
  std::byte* Line(int layer, LineSetId set) const;

  int granularity() const { return granularity_; }
  int64_t num_sets() const { return num_sets_; }
  int64_t free_sets() const { return static_cast<int64_t>(free_.size()); }
  int64_t used_sets() const { return num_sets_ - free_sets(); }
  int64_t reserved_sets() const { return reserved_; }
  // Bytes of one line, a multiple of 64, and of a set.
  size_t line_bytes() const { return line_bytes_; }
  uint64_t set_bytes() const { return set_bytes_; }

 private:
  T0Lines() = default;

  DeviceBuffer memory_;
  int granularity_ = 0;
  size_t line_bytes_ = 0;
  uint64_t set_bytes_ = 0;
  int64_t num_sets_ = 0;
  int64_t reserved_ = 0;
  std::vector<LineSetId> free_;  // taken from the back
  std::vector<bool> taken_;      // by set: catches a set freed twice
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_T0_LINES_H_

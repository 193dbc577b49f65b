// Host memory for rows on their way, aligned to 64 bytes and not zeroed. Large
// enough to fail on a host that is short of memory, which must cost the rows'
// journey and not the process.
#ifndef FARKV_GPU_WORKER_TIERING_HOST_ROWS_H_
#define FARKV_GPU_WORKER_TIERING_HOST_ROWS_H_

#include <cstddef>
#include <memory>
#include <new>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace farkv {

inline constexpr std::align_val_t kHostRowsAlignment{64};

struct FreeHostRows {
  void operator()(std::byte* rows) const {
    ::operator delete(rows, kHostRowsAlignment);
  }
};
using HostRows = std::unique_ptr<std::byte[], FreeHostRows>;

// Without memory the process ends, as it does with the standard containers.
inline HostRows NewHostRows(size_t bytes) {
  return HostRows(
      static_cast<std::byte*>(::operator new(bytes, kHostRowsAlignment)));
}

// RESOURCE_EXHAUSTED when there is no memory.
inline absl::StatusOr<HostRows> AllocateHostRows(size_t bytes) {
  HostRows rows(static_cast<std::byte*>(
      ::operator new(bytes, kHostRowsAlignment, std::nothrow)));
  if (rows != nullptr) return rows;
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for ", bytes, " bytes of rows"));
}

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_HOST_ROWS_H_

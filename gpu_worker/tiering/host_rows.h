// Host memory for rows on their way, aligned to 64 bytes and not zeroed.
#ifndef FARKV_GPU_WORKER_TIERING_HOST_ROWS_H_
#define FARKV_GPU_WORKER_TIERING_HOST_ROWS_H_

#include <cstddef>
#include <memory>
#include <new>

namespace farkv {

inline constexpr std::align_val_t kHostRowsAlignment{64};

struct FreeHostRows {
  void operator()(std::byte* rows) const {
    ::operator delete(rows, kHostRowsAlignment);
  }
};
using HostRows = std::unique_ptr<std::byte[], FreeHostRows>;

inline HostRows AllocateHostRows(size_t bytes) {
  return HostRows(
      static_cast<std::byte*>(::operator new(bytes, kHostRowsAlignment)));
}

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_HOST_ROWS_H_

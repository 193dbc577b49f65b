// Reading memory and doing nothing with it: the yardstick of everything that
// is bound by memory.
#ifndef FARKV_BENCH_PLAIN_READ_H_
#define FARKV_BENCH_PLAIN_READ_H_

#include <cstddef>
#include <cstdint>

#include "common/base/thread_pool.h"

namespace farkv::bench {

// Reads `bytes` bytes at `data`, 64-byte aligned and a multiple of 64, front to
// back, by the widest loads of this CPU; split over the threads in pieces of
// 256 KiB. Returns a value that depends on every byte.
uint64_t PlainRead(ThreadPool& pool, const std::byte* data, size_t bytes);

// Size of the last-level cache that core 0 uses; 32 MiB where it is not told.
size_t LastLevelCacheBytes();

}  // namespace farkv::bench

#endif  // FARKV_BENCH_PLAIN_READ_H_

#include "bench/plain_read.h"

#include <algorithm>
#include <atomic>
#include <fstream>

namespace farkv::bench {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;

using Line = uint64_t __attribute__((vector_size(64)));

// Four sums, so that no addition waits for the one before.
inline __attribute__((always_inline)) uint64_t AddLines(const std::byte* data,
                                                        size_t bytes) {
  const auto* lines = reinterpret_cast<const Line*>(data);
  const size_t count = bytes / sizeof(Line);
  Line sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += lines[i + j];
  }
  for (; i < count; ++i) sums[0] += lines[i];
  const Line sum = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t total = 0;
  for (size_t j = 0; j < 8; ++j) total += sum[j];
  return total;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) uint64_t AddLinesAvx512(
    const std::byte* data, size_t bytes) {
  return AddLines(data, bytes);
}
#endif

uint64_t AddLinesPlain(const std::byte* data, size_t bytes) {
  return AddLines(data, bytes);
}

using Reader = uint64_t (*)(const std::byte*, size_t);

Reader ChooseReader() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return AddLinesAvx512;
#endif
  return AddLinesPlain;
}

}  // namespace

uint64_t PlainRead(ThreadPool& pool, const std::byte* data, size_t bytes) {
  static const Reader reader = ChooseReader();
  const size_t num_pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
  std::atomic<uint64_t> total{0};
  pool.ParallelFor(static_cast<int64_t>(num_pieces), [&](int64_t piece) {
    const size_t begin = static_cast<size_t>(piece) * kPieceBytes;
    const size_t size = std::min(kPieceBytes, bytes - begin);
    total.fetch_add(reader(data + begin, size), std::memory_order_relaxed);
  });
  return total.load();
}

// From the kernel, which counts one cache as one core sees it; sysconf adds up
// those of the whole processor.
size_t LastLevelCacheBytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  size_t kibibytes = 0;
  file >> kibibytes;  // "32768K"
  return kibibytes > 0 ? kibibytes << 10 : size_t{32} << 20;
}

}  // namespace farkv::bench

#include "memory_node/fill_report.h"

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/telemetry/log.h"

namespace farkv {
namespace {

constexpr absl::Duration kLineEvery = absl::Seconds(2);
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

absl::Time Now() { return Clock::Boottime().Now(); }

}  // namespace

FillReport::FillReport(size_t total_bytes) : total_bytes_(total_bytes) {}

void FillReport::Begin(int threads, int metrics_port) {
  absl::MutexLock lock(&mutex_);
  begin_ = Now();
  next_line_ = begin_ + kLineEvery;
  spdlog::info(
      "prefaulting {} with {} threads; not ready before that, progress "
      "in /metrics on port {}",
      FormatBytes(total_bytes_), threads, metrics_port);
}

void FillReport::Progress(size_t done_bytes) {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = Now();
  if (now < next_line_ || done_bytes >= total_bytes_) return;
  next_line_ = now + kLineEvery;
  spdlog::info("prefaulted {} of {}", FormatBytes(done_bytes),
               FormatBytes(total_bytes_));
}

void FillReport::End(bool huge_pages) {
  absl::MutexLock lock(&mutex_);
  const double seconds = absl::ToDoubleSeconds(Now() - begin_);
  spdlog::info("prefaulted {} of {} in {:.2f} s, {:.2f} GiB/s, {} pages",
               FormatBytes(total_bytes_), FormatBytes(total_bytes_), seconds,
               static_cast<double>(total_bytes_) / kGiB / seconds,
               huge_pages ? "huge" : "4 KiB");
}

void FillReport::Slab(bool huge_pages_wanted, bool huge_pages) {
  if (!huge_pages_wanted || huge_pages || warned_.exchange(true)) return;
  spdlog::warn("no reserved huge pages are left: slabs use 4 KiB pages");
}

}  // namespace farkv

#include "gpu_worker/tiering/node_rates.h"

#include <algorithm>

namespace farkv {
namespace {

// Less says more about latency than about the link.
constexpr uint64_t kLeastSampleBytes = 64 << 10;
// Of fetches that follow each other without a gap.
constexpr uint64_t kSampleBytes = 1 << 20;
constexpr absl::Duration kQuiet = absl::Milliseconds(7500);
// A sample that is off by so much is looked into at once, but not for ever:
// there are links that do waver.
constexpr double kChanged = 2;
constexpr int kMaxProbesInARow = 4;
// A node that was busy then need not be so now.
constexpr absl::Duration kAttendHolds = absl::Minutes(5);

// Without the time that passes whatever is sent. Never near zero: where the
// round trip was overestimated the rate is then too low by a factor at most.
absl::Duration Without(absl::Duration fixed, absl::Duration took) {
  return std::max(took - fixed, took / 8);
}

}  // namespace

double RecentValues::Median() const {
  if (added_ == 0) return 0;
  std::array<double, 5> sorted = values_;
  const auto end = sorted.begin() + static_cast<ptrdiff_t>(size());
  std::sort(sorted.begin(), end);
  return sorted[(size() - 1) / 2];
}

// An answer to an attend request is a round trip and more, on a link that is
// awake; a ping often finds both ends asleep.
absl::Duration NodeRates::RoundTrip() const {
  const double pinged = round_trip_.Median();
  const double attended = attend_trip_.Median();
  return absl::Seconds(attended > 0 ? std::min(pinged, attended) : pinged);
}

void NodeRates::NoteRoundTrip(absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  round_trip_.Add(absl::ToDoubleSeconds(took));
}

void NodeRates::AddLinkSample(uint64_t bytes, absl::Duration took) {
  const double seconds = std::max(absl::ToDoubleSeconds(took), 1e-9);
  link_.Add(static_cast<double>(bytes) / seconds);
  link_at_ = clock_.Now();
}

void NodeRates::NoteProbe(uint64_t bytes, absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  AddLinkSample(bytes, Without(RoundTrip(), took));
}

void NodeRates::FetchBegan() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  if (open_++ > 0) return;
  busy_since_ = now;
  busy_bytes_ = 0;
  busy_from_idle_ = true;
  busy_spoiled_ = false;
}

void NodeRates::FetchEnded(uint64_t bytes) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  --open_;
  busy_bytes_ += bytes;
  busy_spoiled_ |= bytes == 0;
  if (open_ > 0 && busy_bytes_ < kSampleBytes) return;
  absl::Duration took = now - busy_since_;
  if (busy_from_idle_) took = Without(RoundTrip(), took);
  if (busy_bytes_ >= kLeastSampleBytes && !busy_spoiled_) {
    AddLinkSample(busy_bytes_, took);
  }
  busy_since_ = now;
  busy_bytes_ = 0;
  busy_from_idle_ = busy_spoiled_ = false;
}

void NodeRates::NoteAttend(const AttendSample& sample) {
  if (sample.requests == 0 || sample.rows == 0) return;
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  absl::Duration took = sample.took;
  if (const double rate = link_.Median(); rate > 0) {
    took =
        Without(absl::Seconds(static_cast<double>(sample.bytes) / rate), took);
  }
  if (now - attend_at_ > kAttendHolds) {
    attend_.Clear();
    attend_trip_.Clear();
  }
  attend_at_ = now;
  attend_trip_.Add(absl::ToDoubleSeconds(took / sample.requests));
  took = Without(sample.requests * RoundTrip(), took);
  attend_.Add(static_cast<double>(sample.rows) /
              std::max(absl::ToDoubleSeconds(took), 1e-9));
}

bool NodeRates::TakeProbe() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  if (open_ > 0) return false;  // it is being measured
  const bool quiet = now - link_at_ >= kQuiet && now - probed_at_ >= kQuiet;
  const double median = link_.Median();
  const bool changed = link_.size() > 0 && (link_.Last() > median * kChanged ||
                                            link_.Last() * kChanged < median);
  if (!changed || quiet) probes_in_a_row_ = 0;
  if (!quiet && !(changed && probes_in_a_row_ < kMaxProbesInARow)) {
    return false;
  }
  ++probes_in_a_row_;
  probed_at_ = now;
  return true;
}

NodeFigures NodeRates::Figures() const {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  NodeFigures figures;
  figures.link_bytes_per_second = link_.Median();
  figures.round_trip = RoundTrip();
  if (now - attend_at_ <= kAttendHolds) {
    figures.attend_rows_per_second = attend_.Median();
  }
  return figures;
}

void NodeRates::NoteChoice(const ColdChoice& choice) {
  absl::MutexLock lock(&mutex_);
  choice_ = choice;
}

ColdChoice NodeRates::choice() const {
  absl::MutexLock lock(&mutex_);
  return choice_;
}

}  // namespace farkv

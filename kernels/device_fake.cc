#include "kernels/device_fake.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/device_kinds.h"

namespace farkv {
namespace {

// One reserved address range, so that opening the memory for an operation is
// one system call however many buffers there are.
class FakeMemory {
 public:
  ~FakeMemory() {
    if (base_ != nullptr) munmap(base_, kReservedBytes);
  }

  absl::Status Reserve() {
    void* base = mmap(nullptr, kReservedBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot reserve ", kReservedBytes, " bytes of address space"));
    }
    base_ = static_cast<std::byte*>(base);
    absl::MutexLock lock(&mutex_);
    next_ = base_;
    // Fewer pages to open and close; advice only.
    madvise(base, kReservedBytes, MADV_HUGEPAGE);
    return absl::OkStatus();
  }

  // Null when the reserved range has no hole that is large enough. The pages
  // are zero because Free gives them back.
  std::byte* Allocate(size_t bytes) {
    if (bytes > kReservedBytes) return nullptr;
    const size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    absl::MutexLock lock(&mutex_);
    std::byte* data = FindHole(next_, base_ + kReservedBytes, rounded);
    if (data == nullptr) data = FindHole(base_, next_, rounded);
    if (data == nullptr) return nullptr;
    next_ = data + rounded;
    AddExtent(data, rounded);
    if (running_ > 0) Protect(data, rounded, PROT_READ | PROT_WRITE);
    return data;
  }

  void Free(std::byte* data, size_t bytes) {
    const size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    absl::MutexLock lock(&mutex_);
    RemoveExtent(data, rounded);
    Protect(data, rounded, PROT_NONE);
    madvise(data, rounded, MADV_DONTNEED);
  }

  // Operations of several streams may overlap: the first opens the memory,
  // the last closes it.
  void BeginOperation() {
    absl::MutexLock lock(&mutex_);
    if (running_++ == 0) ProtectAll(PROT_READ | PROT_WRITE);
  }

  void EndOperation() {
    absl::MutexLock lock(&mutex_);
    if (--running_ == 0) ProtectAll(PROT_NONE);
  }

 private:
  static constexpr size_t kReservedBytes = size_t{64} << 30;
  static constexpr size_t kPageBytes = 4096;

  static void Protect(std::byte* data, size_t bytes, int protection) {
    if (mprotect(data, bytes, protection) == 0) return;
    std::perror("fake device: mprotect");
    std::abort();
  }

  void ProtectAll(int protection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const auto& [data, bytes] : extents_) {
      Protect(data, bytes, protection);
    }
  }

  // The first hole of so many bytes that begins in [begin, end); null: none.
  std::byte* FindHole(std::byte* begin, const std::byte* end,
                      size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto next = extents_.upper_bound(begin);
    if (next != extents_.begin()) {
      const auto& [data, live] = *std::prev(next);
      begin = std::max(begin, data + live);
    }
    while (begin < end) {
      const std::byte* hole_end =
          next == extents_.end() ? base_ + kReservedBytes : next->first;
      if (static_cast<size_t>(hole_end - begin) >= bytes) return begin;
      if (next == extents_.end()) break;
      begin = next->first + next->second;
      ++next;
    }
    return nullptr;
  }

  void AddExtent(std::byte* data, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto next = extents_.find(data + bytes);
    if (next != extents_.end()) {
      bytes += next->second;
      extents_.erase(next);
    }
    const auto behind = extents_.lower_bound(data);
    if (behind != extents_.begin()) {
      auto& [last, last_bytes] = *std::prev(behind);
      if (last + last_bytes == data) {
        last_bytes += bytes;
        return;
      }
    }
    extents_[data] = bytes;
  }

  void RemoveExtent(std::byte* data, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto it = std::prev(extents_.upper_bound(data));
    const std::byte* end = it->first + it->second;
    const std::byte* hole_end = data + bytes;
    it->second = static_cast<size_t>(data - it->first);
    if (it->second == 0) extents_.erase(it);
    if (hole_end < end) {
      extents_[data + bytes] = static_cast<size_t>(end - hole_end);
    }
  }

  absl::Mutex mutex_;
  std::byte* base_ = nullptr;
  // Behind the newest memory: holes are used in turn, so that what was freed
  // faults as long as can be.
  std::byte* next_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  // Maximal stretches of live memory, by address.
  std::map<std::byte*, size_t> extents_ ABSL_GUARDED_BY(mutex_);
};

class FakeStream final : public Stream, public FakeDeviceControl {
 public:
  FakeStream(ThreadPool& pool, std::shared_ptr<FakeMemory> memory)
      : pool_(pool), memory_(std::move(memory)), thread_([this] { Run(); }) {}

  ~FakeStream() override {
    {
      absl::MutexLock lock(&mutex_);
      held_ = false;
      stop_ = true;
    }
    thread_.join();
  }

  DeviceKind kind() const override { return DeviceKind::kFake; }

  void Enqueue(Operation operation) override {
    Push({std::move(operation), nullptr}, /*wanted=*/false);
  }

  void Copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    Enqueue([=](ThreadPool&) { std::memcpy(to, from, bytes); });
  }

  void Notify(std::function<void()> callback) override {
    Push({nullptr, std::move(callback)}, /*wanted=*/true);
  }

  void Synchronize() override {
    absl::MutexLock lock(&mutex_);
    const uint64_t end = pushed_;
    wanted_ = end;
    auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return finished_ >= end;
    };
    mutex_.Await(absl::Condition(&reached));
  }

  void Hold() override {
    absl::MutexLock lock(&mutex_);
    held_ = true;
    auto idle = [this]()
                    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !running_; };
    mutex_.Await(absl::Condition(&idle));
    CloseMemory();  // it may be open for the operation that was to follow
  }

  bool Step() override {
    absl::MutexLock lock(&mutex_);
    if (finished_ == pushed_) return false;
    const uint64_t target = finished_ + 1;
    allowed_ = target;
    wanted_ = std::max(wanted_, target);
    auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return finished_ >= target;
    };
    mutex_.Await(absl::Condition(&reached));
    return true;
  }

  void Resume() override {
    absl::MutexLock lock(&mutex_);
    held_ = false;
    wanted_ = pushed_;
  }

  size_t Queued() const override {
    absl::MutexLock lock(&mutex_);
    return static_cast<size_t>(pushed_ - finished_);
  }

 private:
  // Exactly one of the two is set.
  struct Entry {
    Operation operation;
    std::function<void()> callback;
  };
  // Operations that may gather before they run without being asked for, and
  // the most that may gather at all: then the enqueuing thread waits.
  static constexpr size_t kGather = 64;
  static constexpr size_t kMaxQueued = 4096;

  void Push(Entry entry, bool wanted) {
    absl::MutexLock lock(&mutex_);
    auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return entries_.size() < kMaxQueued;
    };
    mutex_.Await(absl::Condition(&room));
    entries_.push_back(std::move(entry));
    ++pushed_;
    if (wanted || entries_.size() > kGather) wanted_ = pushed_;
  }

  // Whether the oldest queued entry may run once `finished` have finished.
  bool MayRun(uint64_t finished) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (entries_.empty()) return false;
    if (held_) return finished < allowed_;
    return stop_ || finished < wanted_;
  }

  void Run() {
    while (std::optional<Entry> entry = Take()) {
      if (entry->callback) {
        entry->callback();
      } else {
        entry->operation(pool_);
      }
      // What an entry captured is destroyed before anyone learns that it has
      // finished.
      entry.reset();
      Finish();
    }
  }

  // Waits for an entry that may run; none when the stream ends.
  std::optional<Entry> Take() {
    absl::MutexLock lock(&mutex_);
    auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return MayRun(finished_) || (stop_ && entries_.empty());
    };
    mutex_.Await(absl::Condition(&woken));
    if (entries_.empty()) return std::nullopt;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    running_ = true;
    if (!entry.callback && !open_) {
      memory_->BeginOperation();
      open_ = true;
    }
    return entry;
  }

  void Finish() {
    absl::MutexLock lock(&mutex_);
    // When an operation follows at once the memory stays open: opening it
    // costs as much as many operations.
    const bool operation_follows =
        MayRun(finished_ + 1) && !entries_.front().callback;
    if (!operation_follows) CloseMemory();
    running_ = false;
    ++finished_;
  }

  void CloseMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (open_) memory_->EndOperation();
    open_ = false;
  }

  ThreadPool& pool_;
  const std::shared_ptr<FakeMemory> memory_;

  mutable absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // Counts of entries since the beginning: enqueued, finished, asked for by
  // someone who waits, and released by Step.
  uint64_t pushed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;  // counted by memory_
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last, because it uses everything above
};

class FakeDevice final : public Device {
 public:
  FakeDevice(ThreadPool& pool, std::shared_ptr<FakeMemory> memory)
      : pool_(pool), memory_(std::move(memory)) {}

  DeviceKind kind() const override { return DeviceKind::kFake; }

  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override {
    if (bytes == 0) return DeviceBuffer();
    std::byte* data = memory_->Allocate(bytes);
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("fake device has no room for ", bytes, " bytes"));
    }
    return DeviceBuffer(data, bytes, [memory = memory_, data, bytes] {
      memory->Free(data, bytes);
    });
  }

  std::unique_ptr<Stream> NewStream() override {
    return std::make_unique<FakeStream>(pool_, memory_);
  }

 private:
  ThreadPool& pool_;
  // Shared with streams and buffers, which may outlive the device.
  const std::shared_ptr<FakeMemory> memory_;
};

}  // namespace

FakeDeviceControl* FakeDeviceControl::Of(Stream& stream) {
  if (stream.kind() != DeviceKind::kFake) return nullptr;
  return static_cast<FakeStream*>(&stream);
}

absl::StatusOr<std::unique_ptr<Device>> OpenFakeDevice(ThreadPool& pool) {
  auto memory = std::make_shared<FakeMemory>();
  if (absl::Status s = memory->Reserve(); !s.ok()) return s;
  return std::make_unique<FakeDevice>(pool, std::move(memory));
}

}  // namespace farkv

#include "memory_node/pool/slab.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/page/page_format.h"

namespace farkv {

Slab::Slab(uint32_t id, SlabClass slab_class, SlabMemory memory)
    : id_(id),
      class_(std::move(slab_class)),
      memory_(std::move(memory)),
      pages_(memory_.size() / class_.stride) {
  free_.reserve(pages_.size());
  for (size_t i = pages_.size(); i > 0; --i) {
    free_.push_back(static_cast<uint32_t>(i - 1));
  }
}

PageHandle Slab::Take(Generation generation) {
  const uint32_t index = free_.back();
  free_.pop_back();
  Page& page = pages_[index];
  page.state = State::kUsed;
  page.generation = generation.value;
  PageHandle handle{id_, index, generation, index * class_.stride,
                    memory_.data() + index * class_.stride};
  // A mapped reader that sees one byte of the new page must see the new
  // generation too: the generation is stored before the first new byte. Its
  // place does not depend on the geometry.
  PageHeader(handle.data, KvGeometry{}).set_generation(handle.generation);
  std::atomic_thread_fence(std::memory_order_release);
  return handle;
}

absl::Status Slab::CheckUsed(const PageHandle& handle) const {
  return CheckState(handle, State::kUsed);
}

absl::Status Slab::CheckQuarantined(const PageHandle& handle) const {
  return CheckState(handle, State::kQuarantined);
}

absl::Status Slab::CheckState(const PageHandle& handle, State state) const {
  if (handle.page >= pages_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("slab ", id_, " has ", pages_.size(), " pages, not page ",
                     handle.page));
  }
  const Page& page = pages_[handle.page];
  if (page.generation != handle.generation.value) {
    return absl::FailedPreconditionError(
        absl::StrCat("page ", handle.page, " of slab ", id_, " has generation ",
                     page.generation, ", not ", handle.generation.value));
  }
  if (page.state != state) {
    return absl::FailedPreconditionError(
        absl::StrCat("page ", handle.page, " of slab ", id_, ", generation ",
                     page.generation, ", is ", Name(page.state)));
  }
  return absl::OkStatus();
}

void Slab::Pin(uint32_t page) { ++pages_[page].pins; }

bool Slab::Unpin(uint32_t page) {
  --pages_[page].pins;
  if (pages_[page].state != State::kReleased) return false;
  return Release(page);
}

bool Slab::Release(uint32_t page) {
  if (pages_[page].pins > 0) {
    pages_[page].state = State::kReleased;
    return false;
  }
  pages_[page].state = State::kFree;
  free_.push_back(page);
  return true;
}

void Slab::Quarantine(uint32_t page) {
  pages_[page].state = State::kQuarantined;
  ++num_quarantined_;
}

bool Slab::Restore(uint32_t page) {
  --num_quarantined_;
  return Release(page);
}

const char* Slab::Name(State state) {
  switch (state) {
    case State::kFree:
      return "free";
    case State::kUsed:
      return "used";
    case State::kQuarantined:
      return "in quarantine";
    case State::kReleased:
      return "released, a copy still runs";
  }
  return "unknown";
}

}  // namespace farkv

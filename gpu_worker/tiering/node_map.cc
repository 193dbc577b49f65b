#include "gpu_worker/tiering/node_map.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"

namespace farkv {

absl::StatusOr<NodeMap::Slab> NodeMap::Fetch(uint32_t slab_id,
                                             TicketSource new_ticket) {
  FARKV_ASSIGN_OR_RETURN(Ticket ticket, new_ticket());
  FARKV_ASSIGN_OR_RETURN(
      Slab slab, client_.Fetch({ticket.session, ticket.token, slab_id}));
  // Kept by the pages that lie in it, not by the client.
  client_.Forget(slab_id);
  return slab;
}

absl::StatusOr<MappedPage> NodeMap::Find(uint32_t slab_id, uint64_t offset,
                                         size_t page_bytes,
                                         TicketSource new_ticket) {
  MappedPage page;
  page.slab = slabs_[slab_id].lock();
  if (page.slab == nullptr) {
    if (clock_.Now() < retry_at_) return last_failure_;
    absl::StatusOr<Slab> slab = Fetch(slab_id, new_ticket);
    if (!slab.ok()) {
      spdlog::warn("slab {} is not mapped, tried again in {}: {}", slab_id,
                   absl::FormatDuration(kRetry),
                   std::string(slab.status().message()));
      last_failure_ = slab.status();
      retry_at_ = clock_.Now() + kRetry;
      return last_failure_;
    }
    page.slab = *std::move(slab);
    slabs_[slab_id] = page.slab;
  }
  const uint64_t size = page.slab->size_bytes();
  if (offset > size || page_bytes > size - offset ||
      offset % alignof(uint64_t) != 0) {
    return absl::OutOfRangeError(absl::StrCat(
        "a page of ", page_bytes, " bytes at offset ", offset,
        " does not lie inside slab ", slab_id, " of ", size, " bytes"));
  }
  page.data = page.slab->base() + offset;
  return page;
}

}  // namespace farkv

#include "gpu_worker/tiering/node_map.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {

absl::StatusOr<MappedPage> NodeMap::Find(uint32_t slab_id, uint64_t offset,
                                         size_t page_bytes,
                                         TicketSource new_ticket) {
  MappedPage page;
  page.slab = slabs_[slab_id].lock();
  if (page.slab == nullptr) {
    FARKV_ASSIGN_OR_RETURN(Ticket ticket, new_ticket());
    FARKV_ASSIGN_OR_RETURN(
        page.slab, client_.Fetch({ticket.session, ticket.token, slab_id}));
    // Kept by the pages that lie in it, not by the client.
    client_.Forget(slab_id);
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

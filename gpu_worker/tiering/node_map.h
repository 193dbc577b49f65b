// The mapped pages of one node: turns a place on the node into an address in
// this process. Slabs are mapped when first named and stay mapped while a page
// refers to them. One NodeMap serves one epoch.
//
// Each try may block for as long as a socket and an RPC may take, so a map
// that has failed is left alone for kRetry: until then a slab that is not
// mapped yet is answered with the error of the last try.
//
// Thread-compatible: the link's thread owns it; the mappings it gives out are
// immutable and shared.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_MAP_H_
#define FARKV_GPU_WORKER_TIERING_NODE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/mapping/map_client.h"

namespace farkv {

struct MappedPage {
  std::shared_ptr<const MappedSlab> slab;
  const std::byte* data = nullptr;  // inside the slab; null: not mapped
};

class NodeMap {
 public:
  static constexpr absl::Duration kRetry = absl::Seconds(5);

  // `clock` outlives the map.
  NodeMap(std::string socket_path, absl::Duration timeout,
          const Clock& clock = Clock::Boottime())
      : client_(std::move(socket_path), timeout), clock_(clock) {}

  // What a slab is asked for with; each token serves once.
  struct Ticket {
    SessionId session;
    std::string token;
  };
  using TicketSource = absl::FunctionRef<absl::StatusOr<Ticket>()>;

  // The page of `page_bytes` at `offset`. `new_ticket` is called for a slab
  // that is not mapped. OUT_OF_RANGE naming the sizes when the page does not
  // lie inside the slab; else the errors of `new_ticket` and MapClient.
  absl::StatusOr<MappedPage> Find(uint32_t slab_id, uint64_t offset,
                                  size_t page_bytes, TicketSource new_ticket);

 private:
  using Slab = std::shared_ptr<const MappedSlab>;
  absl::StatusOr<Slab> Fetch(uint32_t slab_id, TicketSource new_ticket);

  MapClient client_;
  const Clock& clock_;
  absl::Status last_failure_;
  absl::Time retry_at_ = absl::InfinitePast();
  std::unordered_map<uint32_t, std::weak_ptr<const MappedSlab>> slabs_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_MAP_H_

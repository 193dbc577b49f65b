#include "memory_node/service/watch_codec.h"

#include "common/base/session_handle.h"

namespace farkv {

farkv::memory::v1::WatchNodeResponse ToProto(
    const NodeState& state, const std::vector<RevokedSession>& revoked,
    const std::string& tenant, Epoch epoch, const PagePoolStats& pool) {
  memory::v1::WatchNodeResponse response;
  response.set_epoch(epoch.value);
  response.set_pressure(state.pressure);
  response.set_draining(state.draining);
  response.set_free_pages(pool.free_pages);
  response.set_free_bytes(pool.capacity_bytes - pool.used_bytes -
                          pool.quarantined_bytes);
  for (const RevokedSession& session : revoked) {
    if (session.tenant != tenant) continue;
    response.add_revoked_session_ids(SessionHandleBytes(session.id));
  }
  return response;
}

}  // namespace farkv

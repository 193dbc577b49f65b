// What WatchNode streams. Pure.
#ifndef FARKV_MEMORY_NODE_SERVICE_WATCH_CODEC_H_
#define FARKV_MEMORY_NODE_SERVICE_WATCH_CODEC_H_

#include <string>
#include <vector>

#include "common/base/ids.h"
#include "farkv/memory/v1/memory.pb.h"
#include "memory_node/directory/directory.h"
#include "memory_node/pool/page_pool.h"
#include "memory_node/service/node_events.h"

namespace farkv {

// `revoked`: those of `tenant` go out, as handles (session_handle.h): whoever
// reaches the port may watch, and a whole id lets its bearer act on the
// session, here under the lease of its next life and on the worker's other
// nodes now.
farkv::memory::v1::WatchNodeResponse ToProto(
    const NodeState& state, const std::vector<RevokedSession>& revoked,
    const std::string& tenant, Epoch epoch, const PagePoolStats& pool);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_WATCH_CODEC_H_

// Reports of the node -> messages of AdminService. Pure.
#ifndef FARKV_MEMORY_NODE_SERVICE_ADMIN_CODEC_H_
#define FARKV_MEMORY_NODE_SERVICE_ADMIN_CODEC_H_

#include <string>
#include <vector>

#include "farkv/admin/v1/admin.pb.h"
#include "memory_node/directory/session_report.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

farkv::admin::v1::Session ToProto(const SessionReport& report);
// `tier`: kT1 or kT2, that of the pool.
farkv::admin::v1::Pool PoolToProto(Tier tier, const PagePoolStats& pool,
                                   const DirectoryStats& directory,
                                   const std::string& node_id, int numa_node);
// Tiers per position: '2' when any head of any layer has the row in T2, else
// '1' when any has it in T1, else '3'. A page counts as stored when every layer
// that is reserved is stored.
farkv::admin::v1::GetTierMapResponse TierMapToProto(
    const SessionReport& session, const std::vector<PageReport>& pages,
    const std::string& node_id);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_ADMIN_CODEC_H_

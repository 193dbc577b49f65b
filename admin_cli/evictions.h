// Decisions of memory nodes and workers as rows of an answer. Pure.
#ifndef FARKV_ADMIN_CLI_EVICTIONS_H_
#define FARKV_ADMIN_CLI_EVICTIONS_H_

#include <string>

#include "admin_cli/output.h"
#include "farkv/admin/v1/admin.pb.h"

namespace farkv {

Output EvictionOutput();
// `node`: whom it was asked of. A row says "destroyed" of a worker, which has
// done so; of a node "ranked" when it ranked rows and others chose among them
// (kept is 0 then), else "decided".
void AddDecision(
    const farkv::admin::v1::ListEvictionsResponse::Decision& decision,
    const std::string& node, Output& output);

Output ReplayOutput();
// `replay` is null when the decision could not be computed again; `why` then
// says the reason.
void AddReplay(
    const farkv::admin::v1::ListEvictionsResponse::Decision& decision,
    const std::string& node,
    const farkv::admin::v1::ReplayEvictionResponse* replay,
    const std::string& why, Output& output);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_EVICTIONS_H_

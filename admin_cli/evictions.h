// Decisions of memory nodes as rows of an answer. Pure.
#ifndef FARKV_ADMIN_CLI_EVICTIONS_H_
#define FARKV_ADMIN_CLI_EVICTIONS_H_

#include <string>

#include "admin_cli/output.h"
#include "farkv/admin/v1/admin.pb.h"

namespace farkv {

Output EvictionOutput();
// `node`: whom it was asked of. A row says "ranked" when the node ranked rows
// and others chose among them (kept is 0 then), else "decided".
void AddDecision(
    const farkv::admin::v1::ListEvictionsResponse::Decision& decision,
    const std::string& node, Output& output);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_EVICTIONS_H_

// Pages that are not free <-> ListPages of AdminService. Pure.
#ifndef FARKV_MEMORY_NODE_SERVICE_PAGE_LIST_CODEC_H_
#define FARKV_MEMORY_NODE_SERVICE_PAGE_LIST_CODEC_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "farkv/admin/v1/admin.pb.h"
#include "memory_node/directory/session_report.h"

namespace farkv {

// Of one answer: about 150 KiB.
inline constexpr int32_t kMaxListedPages = 1000;

// INVALID_ARGUMENT naming page_size and its range, page_token, session_id, tier
// or state.
absl::StatusOr<PageQuery> ReadQuery(
    const farkv::admin::v1::ListPagesRequest& request);

// `found`: up to one more than `count`. That one is not shown; it says that
// there is a next part.
farkv::admin::v1::ListPagesResponse ToProto(const std::vector<HeldPage>& found,
                                            size_t count);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_PAGE_LIST_CODEC_H_

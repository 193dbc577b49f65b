// Which node holds which stripe of a sequence. DESIGN 9: rendezvous hashing;
// by default a sequence stays on one node while it fits, with spread its
// stripes take turns over all nodes. Pure.
#ifndef FARKV_GPU_WORKER_TIERING_STRIPES_H_
#define FARKV_GPU_WORKER_TIERING_STRIPES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace farkv {

// Indices of all nodes in the session's order of preference. Removing a node
// keeps the order of the others.
std::vector<int> NodeOrder(const SessionId& session,
                           std::span<const std::string> node_ids);

// The node of a page: its stripe's turn with spread, else order[first_choice].
// `order` must not be empty.
int NodeOfPage(std::span<const int> order, int32_t page_index,
               int stripe_tokens, bool spread, int first_choice);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_STRIPES_H_

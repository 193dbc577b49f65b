// A message's stores: decode, check, copy, answer page by page. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_STORE_HANDLER_H_
#define FARKV_MEMORY_NODE_DATA_STORE_HANDLER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "memory_node/data/data_metrics.h"
#include "memory_node/directory/directory.h"

namespace farkv {

// One code per page of the message, in order: DATA_LOSS when a row's checksum
// was wrong, ALREADY_EXISTS when the page holds other rows, ABORTED while
// another store of it runs, or the directory's. The error of the whole message
// when it cannot be decoded or the session cannot be used. A page whose rows
// it holds already is checked, written again only if it is damaged, and OK.
absl::StatusOr<std::vector<absl::StatusCode>> StorePages(
    Directory& directory, const DataCaller& caller,
    std::span<const std::byte> body, DataMetrics& metrics);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_STORE_HANDLER_H_

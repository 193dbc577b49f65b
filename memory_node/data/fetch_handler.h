// Fetches of one message: decode, check, gather the rows of all pages into one
// contiguous piece. Thread-safe, as the directory and the metrics are.
#ifndef FARKV_MEMORY_NODE_DATA_FETCH_HANDLER_H_
#define FARKV_MEMORY_NODE_DATA_FETCH_HANDLER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/transport/transport.h"
#include "memory_node/data/data_metrics.h"
#include "memory_node/directory/directory.h"

namespace farkv {

// The two pieces of a FetchReply.
struct FetchedRows {
  std::vector<std::byte> head;
  BufferLease rows;
};

// Memory for that many bytes of rows, or why there is none.
using RowMemory = absl::FunctionRef<absl::StatusOr<BufferLease>(size_t bytes)>;

// Pages that cannot be read carry their own code and no rows. The error of the
// whole message when it cannot be decoded, when the session cannot be used,
// when the rows are more than a message may carry, or of `memory`, which is
// called once at most.
absl::StatusOr<FetchedRows> FetchPages(Directory& directory,
                                       const DataCaller& caller, int32_t layer,
                                       std::span<const std::byte> body,
                                       RowMemory memory, DataMetrics& metrics);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_FETCH_HANDLER_H_

// Test builds only: damages one stored row, once, to prove that benches and
// workers notice. Everything else passes through to the transport inside.
#ifndef FARKV_MEMORY_NODE_CORRUPTING_TRANSPORT_H_
#define FARKV_MEMORY_NODE_CORRUPTING_TRANSPORT_H_

#include <memory>

#include "common/transport/transport.h"
#include "memory_node/directory/directory.h"

namespace farkv {

// Flips one bit of the first row of a stored page, right before the first
// store reply that leaves one behind is sent. `directory` outlives the result.
std::unique_ptr<Transport> MakeCorruptingTransport(
    std::unique_ptr<Transport> inner, Directory& directory);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_CORRUPTING_TRANSPORT_H_

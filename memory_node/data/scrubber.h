// Reads stored pages where they lie and checks header and row checksums, at a
// bounded rate, so that a bit that flipped in memory is found before a mapped
// reader uses it. Changes nothing.
//
// Thread-safe; a run blocks its thread (it sleeps to keep the rate).
#ifndef FARKV_MEMORY_NODE_DATA_SCRUBBER_H_
#define FARKV_MEMORY_NODE_DATA_SCRUBBER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "common/telemetry/metrics.h"
#include "memory_node/directory/directory.h"

namespace farkv {

struct ScrubResult {
  uint64_t pages = 0;
  uint64_t rows = 0;
  uint64_t mismatches = 0;  // rows, heads of T2 pages, and headers
};

class Scrubber {
 public:
  // `directory` outlives the scrubber; `checksum_failures` counts mismatches.
  // `bytes_per_second` bounds the reading.
  Scrubber(Directory& directory, Counter checksum_failures,
           uint64_t bytes_per_second)
      : directory_(directory),
        checksum_failures_(checksum_failures),
        bytes_per_second_(bytes_per_second) {}

  // One session, or all of them. NOT_FOUND for an unknown one; CANCELLED when
  // `cancelled`, asked before each page and every 100 ms of waiting, returns
  // true. Pages that are freed
  // meanwhile are skipped.
  absl::StatusOr<ScrubResult> Run(const std::optional<SessionId>& session,
                                  const std::function<bool()>& cancelled);

 private:
  absl::Status ScrubSession(const SessionId& session,
                            const std::function<bool()>& cancelled,
                            ScrubResult& result);
  void ScrubPage(const StoredPage& page, ScrubResult& result);

  Directory& directory_;
  Counter checksum_failures_;
  const uint64_t bytes_per_second_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_SCRUBBER_H_

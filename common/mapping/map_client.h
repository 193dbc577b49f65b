// The reader's side of a node's map socket: fetches slab descriptors and maps
// them read-only. DESIGN 5.5.
//
// One MapClient serves one (node, epoch); a node that has restarted has other
// slabs behind the same ids, so the worker makes a new client for it.
// Thread-safe; no lock is held over a system call.
#ifndef FARKV_COMMON_MAPPING_MAP_CLIENT_H_
#define FARKV_COMMON_MAPPING_MAP_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/mapping/map_protocol.h"
#include "common/mapping/unique_fd.h"

namespace farkv {

// A slab mapped PROT_READ, MAP_SHARED; unmapped by the destructor. The memory
// stays readable after the node has died or given the slab away: the reader
// must check generation, epoch and lease (DESIGN 6). Immutable.
class MappedSlab {
 public:
  // Maps a descriptor after checking that it is a memfd of exactly
  // `size_bytes` with all seals of MemfdSlab, so it can neither shrink under
  // the reader (SIGBUS) nor be written by anybody else. FAILED_PRECONDITION
  // naming what is missing.
  static absl::StatusOr<std::shared_ptr<const MappedSlab>> Map(
      UniqueFd fd, uint64_t size_bytes);
  ~MappedSlab();
  MappedSlab(const MappedSlab&) = delete;
  MappedSlab& operator=(const MappedSlab&) = delete;

  const std::byte* base() const { return base_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  MappedSlab(const std::byte* base, size_t size_bytes)
      : base_(base), size_bytes_(size_bytes) {}

  const std::byte* base_;
  size_t size_bytes_;
};

class MapClient {
 public:
  // `timeout` bounds each Fetch as a whole: connect, send and receive.
  MapClient(std::string socket_path, absl::Duration timeout);

  // The slab from an earlier call, or fetched now over a connection of its
  // own. The node's own error as it came; DEADLINE_EXCEEDED or UNAVAILABLE
  // naming the socket when the node does not answer.
  absl::StatusOr<std::shared_ptr<const MappedSlab>> Fetch(
      const MapRequest& request);

  // Stops keeping a slab, for instance when the node has retired it. Readers
  // that hold it keep it mapped.
  void Forget(uint32_t slab_id);
  size_t num_slabs() const;
  uint64_t mapped_bytes() const;
  const std::string& socket_path() const { return socket_path_; }

 private:
  const std::string socket_path_;
  const absl::Duration timeout_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint32_t, std::shared_ptr<const MappedSlab>> slabs_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_COMMON_MAPPING_MAP_CLIENT_H_

// One fetch of cold rows: some pages of one sequence, layer and node, in one
// request and one gathered reply. DESIGN 5.5 and 6.
//
// Every row's CRC is checked on the executor before anybody sees it, and what
// comes as T2 is decoded there. A failed
// try is repeated once, but not one that was refused for want of room. The
// operation keeps itself alive until its reply or deadline has come; dropping
// it early drops the result.
//
// Thread-safe.
#ifndef FARKV_GPU_WORKER_TIERING_FETCH_OPERATION_H_
#define FARKV_GPU_WORKER_TIERING_FETCH_OPERATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"
#include "common/page/bodies.h"
#include "gpu_worker/tiering/host_rows.h"
#include "gpu_worker/tiering/node_link.h"
#include "gpu_worker/tiering/run_cache.h"

namespace farkv {

// The slots wanted of one page, for every KV head.
struct FetchPage {
  int32_t page_index = 0;
  Generation generation;
  uint64_t slots = 0;
  Tier tier = Tier::kT1;
  int t2_bits = 0;
  // T2 only: what lives of `slots`, by KV head; a T2 page has no others, and a
  // head without any comes as zeros. Empty: all of them.
  std::vector<uint64_t> live;

  uint64_t rows(size_t head) const { return live.empty() ? slots : live[head]; }
};

struct FetchSpec {
  KvGeometry geometry;
  SessionId session;
  int layer = 0;
  uint64_t step = 0;
  absl::Duration timeout;
  bool check_rows = true;
  std::vector<FetchPage> pages;  // ascending; at most kMaxMessageItems
};

// What all fetches together hold, from their start to their last use.
struct FetchLoad {
  std::atomic<uint64_t> bytes{0};
  std::atomic<int> operations{0};
};

class FetchOperation : public std::enable_shared_from_this<FetchOperation> {
 public:
  // `link` and `load` outlive the operation.
  static std::shared_ptr<FetchOperation> Start(FetchSpec spec, NodeLink& link,
                                               FetchLoad& load);
  ~FetchOperation();

  bool done() const;
  // The result, or DEADLINE_EXCEEDED when none is there after `timeout`.
  absl::Status Wait(absl::Duration timeout) const;
  // After Wait has returned OK: one block per page, valid as long as this.
  std::span<const ColdBlock> blocks() const { return blocks_; }
  // After Wait has returned the operation's error: pages without good rows,
  // where the last answer told them from the others; else empty.
  const std::vector<int32_t>& bad_pages() const { return bad_pages_; }
  uint64_t bytes() const { return bytes_; }
  const FetchSpec& spec() const { return spec_; }

 private:
  FetchOperation(FetchSpec spec, NodeLink& link, FetchLoad& load);
  void Submit();
  void Receive(absl::StatusOr<Message> reply);
  absl::Status Accept(absl::StatusOr<Message> reply);
  absl::Status AcceptPages(std::span<const FetchReplyItem> items,
                           const std::byte* rows);
  absl::Status AcceptRows(const FetchReplyItem& item, const FetchPage& page,
                          const std::byte* rows);
  absl::Status CheckGeometry(const KvGeometry& found) const;
  absl::Status CheckItem(const FetchReplyItem& item,
                         const FetchPage& page) const;
  absl::Status CheckRows(const FetchReplyItem& item, const FetchPage& page,
                         const std::byte* rows) const;
  absl::Status CheckParts(const FetchReplyItem& item, const FetchPage& page,
                          const std::byte* parts) const;
  absl::StatusOr<HostRows> Decode(const FetchPage& page,
                                  const std::byte* parts) const;

  const FetchSpec spec_;
  NodeLink& link_;
  FetchLoad& load_;
  uint64_t bytes_ = 0;
  uint64_t wire_bytes_ = 0;  // of the rows in the last reply
  int tries_ = 0;            // one thread at a time: the one that submits

  // Written before done_, read after it.
  BufferLease body_;
  HostRows copy_;
  std::vector<HostRows> decoded_;  // of T2 pages
  std::vector<ColdBlock> blocks_;
  std::vector<int32_t> bad_pages_;

  mutable absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_FETCH_OPERATION_H_

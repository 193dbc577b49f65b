#include "gpu_worker/tiering/store_pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "gpu_worker/tiering/host_rows.h"
#include "kernels/elementwise.h"

namespace farkv {
namespace {

// Rows of one message. Small enough that a lost one costs little.
constexpr size_t kMessageBytes = size_t{8} << 20;

// Where the rows of one layer lie in T0, as pieces of a page's block. Groups
// without a line have no row any more and are stored as zeros.
void AddPieces(const KvGeometry& geometry, int layer, const Page& page,
               const T0Lines& lines, std::byte* to,
               std::vector<CopyPiece>& pieces) {
  const auto g = static_cast<size_t>(lines.granularity());
  if (page.resident != ~uint64_t{0}) {
    std::memset(to, 0, geometry.BlockBytes(kPageTokens));
  }
  if (g == kPageTokens) {
    pieces.push_back({to, lines.Line(layer, page.lines[0]),
                      geometry.BlockBytes(kPageTokens)});
    return;
  }
  const size_t bytes = g * geometry.VectorBytes();
  for (size_t group = 0; group < page.lines.size(); ++group) {
    if (page.lines[group] == kNoLineSet) continue;
    const std::byte* line = lines.Line(layer, page.lines[group]);
    for (size_t h = 0; h < static_cast<size_t>(geometry.num_kv_heads); ++h) {
      pieces.push_back({to + geometry.KeyOffset(kPageTokens, h, group * g),
                        line + geometry.KeyOffset(g, h, 0), bytes});
      pieces.push_back({to + geometry.ValueOffset(kPageTokens, h, group * g),
                        line + geometry.ValueOffset(g, h, 0), bytes});
    }
  }
}

// One page on its way. Owned by whatever runs next: the copy, the executor's
// task, the callbacks of its messages.
class StoreJob : public std::enable_shared_from_this<StoreJob> {
 public:
  StoreJob(const KvGeometry& geometry, SequenceId sequence, SessionId session,
           int32_t page_index, std::vector<PagePlace> places, NodeLink& link,
           Inbox& inbox, absl::Duration timeout, HostRows rows)
      : geometry_(geometry),
        sequence_(sequence),
        session_(session),
        page_index_(page_index),
        places_(std::move(places)),
        link_(link),
        inbox_(inbox),
        timeout_(timeout),
        rows_(std::move(rows)) {}

  std::byte* Rows(int layer) {
    return rows_.get() + static_cast<size_t>(layer) * LayerBytes();
  }

  void Filter(const StoredRowsFilter& filter) {
    filter(page_index_,
           {rows_.get(),
            static_cast<size_t>(geometry_.num_layers) * LayerBytes()});
  }

  void Send() {
    const int per_message = std::max<int>(
        1, static_cast<int>(kMessageBytes / std::max<size_t>(1, LayerBytes())));
    const int layers = geometry_.num_layers;
    {
      absl::MutexLock lock(&mutex_);
      open_messages_ = (layers + per_message - 1) / per_message;
    }
    for (int first = 0; first < layers; first += per_message) {
      const int end = std::min(layers, first + per_message);
      absl::Status status = SendLayers(first, end);
      if (!status.ok()) FinishOne(std::move(status));
    }
  }

 private:
  size_t LayerBytes() const { return geometry_.BlockBytes(kPageTokens); }

  StoreItem MakeItem(int layer) {
    StoreItem item;
    item.layer = layer;
    item.page_index = page_index_;
    item.generation = places_[static_cast<size_t>(layer)].generation;
    const auto heads = static_cast<size_t>(geometry_.num_kv_heads);
    item.live.assign(heads, ~uint64_t{0});
    item.row_crcs.reserve(heads * kPageTokens);
    const size_t vector_bytes = geometry_.VectorBytes();
    const std::byte* rows = Rows(layer);
    for (size_t h = 0; h < heads; ++h) {
      for (size_t slot = 0; slot < kPageTokens; ++slot) {
        item.row_crcs.push_back(RowCrc(
            {rows + geometry_.KeyOffset(kPageTokens, h, slot), vector_bytes},
            {rows + geometry_.ValueOffset(kPageTokens, h, slot),
             vector_bytes}));
      }
    }
    return item;
  }

  absl::Status SendLayers(int first, int end) {
    StoreRequest request;
    request.geometry = geometry_;
    request.geometry.num_layers = 0;
    for (int layer = first; layer < end; ++layer) {
      request.items.push_back(MakeItem(layer));
    }
    FARKV_ASSIGN_OR_RETURN(std::vector<std::byte> prefix,
                           EncodeStoreRequest(request));
    std::vector<BufferLease> body;
    body.push_back(BufferLease::Owning(std::move(prefix)));
    const auto self = shared_from_this();
    body.emplace_back(
        std::span(Rows(first), static_cast<size_t>(end - first) * LayerBytes()),
        [self]() {});
    MessageHeader header;
    header.type = MessageType::kStoreRequest;
    header.session = session_;
    const auto count = static_cast<size_t>(end - first);
    return link_.Submit(header, std::move(body), timeout_,
                        [self, count](absl::StatusOr<Message> reply) {
                          self->FinishOne(CheckReply(std::move(reply), count));
                        });
  }

  static absl::Status CheckReply(absl::StatusOr<Message> reply, size_t count) {
    FARKV_RETURN_IF_ERROR(reply.status());
    FARKV_RETURN_IF_ERROR(
        CheckMessage(reply->header_bytes, reply->body.bytes()));
    FARKV_ASSIGN_OR_RETURN(const std::vector<absl::StatusCode> codes,
                           DecodeStoreReply(reply->body.bytes()));
    if (codes.size() != count) {
      return absl::InternalError(absl::StrCat("store reply has ", codes.size(),
                                              " codes for ", count, " pages"));
    }
    for (absl::StatusCode code : codes) {
      if (code != absl::StatusCode::kOk) {
        return absl::Status(code, "the node refused a page");
      }
    }
    return absl::OkStatus();
  }

  void FinishOne(absl::Status status) {
    PageStored stored{sequence_,   link_.index(),
                      page_index_, places_.front().generation,
                      0,           absl::OkStatus()};
    {
      absl::MutexLock lock(&mutex_);
      if (!status.ok() && status_.ok()) status_ = std::move(status);
      if (--open_messages_ > 0) return;
      stored.status = status_;
    }
    if (absl::IsDataLoss(stored.status)) {
      link_.Count(NodeFault::kDamagedAnswer);
    }
    if (!stored.status.ok()) link_.Count(NodeFault::kFailedStore);
    stored.rows_bytes =
        static_cast<uint64_t>(geometry_.num_layers) * LayerBytes();
    inbox_.Push(std::move(stored));
  }

  const KvGeometry geometry_;
  const SequenceId sequence_;
  const SessionId session_;
  const int32_t page_index_;
  const std::vector<PagePlace> places_;
  NodeLink& link_;
  Inbox& inbox_;
  const absl::Duration timeout_;
  const HostRows rows_;

  absl::Mutex mutex_;
  int open_messages_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StorePipeline::StorePipeline(Device& device, const KvGeometry& geometry,
                             Executor& executor, Inbox& inbox,
                             absl::Duration timeout, uint64_t max_bytes)
    : geometry_(geometry),
      executor_(executor),
      inbox_(inbox),
      timeout_(timeout),
      max_bytes_(max_bytes),
      page_bytes_(static_cast<uint64_t>(geometry.num_layers) *
                  geometry.BlockBytes(kPageTokens)),
      stream_(device.NewStream()) {}

absl::Status StorePipeline::Start(SequenceId sequence, SessionId session,
                                  const Page& page, const RemotePage& remote,
                                  const T0Lines& lines, NodeLink& link) {
  FARKV_ASSIGN_OR_RETURN(HostRows rows, AllocateHostRows(page_bytes_));
  auto job = std::make_shared<StoreJob>(geometry_, sequence, session,
                                        page.index, remote.places, link, inbox_,
                                        timeout_, std::move(rows));
  std::vector<CopyPiece> pieces;
  for (int layer = 0; layer < geometry_.num_layers; ++layer) {
    AddPieces(geometry_, layer, page, lines, job->Rows(layer), pieces);
  }
  CopyPieces(*stream_, pieces);
  bytes_ += page_bytes_;
  // By value: what is on its way may outlive the pipeline.
  stream_->Notify([job, filter = filter_, executor = &executor_] {
    executor->Execute([job, filter] {
      if (filter) job->Filter(filter);
      job->Send();
    });
  });
  return absl::OkStatus();
}

}  // namespace farkv

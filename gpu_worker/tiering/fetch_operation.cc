#include "gpu_worker/tiering/fetch_operation.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/page/t2_codec.h"

namespace farkv {
namespace {

constexpr int kTries = 2;
constexpr uintptr_t kAlignment = 64;

uint64_t BlockBytesOf(const KvGeometry& geometry, uint64_t slots) {
  return geometry.BlockBytes(static_cast<size_t>(std::popcount(slots)));
}

}  // namespace

FetchOperation::FetchOperation(FetchSpec spec, NodeLink& link, FetchLoad& load)
    : spec_(std::move(spec)), link_(link), load_(load) {
  for (const FetchPage& page : spec_.pages) {
    bytes_ += BlockBytesOf(spec_.geometry, page.slots);
  }
  load_.bytes.fetch_add(bytes_, std::memory_order_relaxed);
  load_.operations.fetch_add(1, std::memory_order_relaxed);
}

FetchOperation::~FetchOperation() {
  load_.bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  load_.operations.fetch_sub(1, std::memory_order_relaxed);
}

std::shared_ptr<FetchOperation> FetchOperation::Start(FetchSpec spec,
                                                      NodeLink& link,
                                                      FetchLoad& load) {
  std::shared_ptr<FetchOperation> operation(
      new FetchOperation(std::move(spec), link, load));
  link.rates().FetchBegan();
  operation->Submit();
  return operation;
}

void FetchOperation::Submit() {
  ++tries_;
  const auto heads = static_cast<size_t>(spec_.geometry.num_kv_heads);
  std::vector<FetchItem> items;
  items.reserve(spec_.pages.size());
  for (const FetchPage& page : spec_.pages) {
    FetchItem& item = items.emplace_back();
    item.page_index = page.page_index;
    item.generation = page.generation;
    for (size_t h = 0; h < heads; ++h) item.rows.push_back(page.rows(h));
    item.tier = page.tier;
    item.t2_bits = page.t2_bits;
  }
  absl::StatusOr<std::vector<std::byte>> body =
      EncodeFetchRequest(items, spec_.geometry.num_kv_heads);
  if (!body.ok()) return Receive(body.status());
  MessageHeader header;
  header.type = MessageType::kFetchRequest;
  header.session = spec_.session;
  header.layer = static_cast<uint32_t>(spec_.layer);
  header.step = spec_.step;
  std::vector<BufferLease> pieces;
  pieces.push_back(BufferLease::Owning(*std::move(body)));
  absl::Status submitted =
      link_.Submit(header, std::move(pieces), spec_.timeout,
                   [self = shared_from_this()](absl::StatusOr<Message> reply) {
                     self->Receive(std::move(reply));
                   });
  if (!submitted.ok()) Receive(submitted);
}

void FetchOperation::Receive(absl::StatusOr<Message> reply) {
  absl::Status status = Accept(std::move(reply));
  if (absl::IsDataLoss(status)) link_.Count(NodeFault::kDamagedAnswer);
  const bool repeat = !status.ok() && !absl::IsResourceExhausted(status);
  if (repeat && tries_ < kTries) {
    link_.Count(NodeFault::kRepeatedFetch);
    return Submit();
  }
  if (!status.ok()) link_.Count(NodeFault::kFailedFetch);
  link_.rates().FetchEnded(status.ok() && tries_ == 1 ? wire_bytes_ : 0);
  absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
  done_ = true;
}

absl::Status FetchOperation::Accept(absl::StatusOr<Message> reply) {
  bad_pages_.clear();
  FARKV_RETURN_IF_ERROR(reply.status());
  FARKV_RETURN_IF_ERROR(CheckMessage(reply->header_bytes, reply->body.bytes()));
  FARKV_ASSIGN_OR_RETURN(const auto decoded,
                         DecodeFetchReply(reply->body.bytes()));
  const std::vector<FetchReplyItem>& items = decoded.message.items;
  FARKV_RETURN_IF_ERROR(CheckGeometry(decoded.message.geometry));
  if (items.size() != spec_.pages.size()) {
    return absl::DataLossError(absl::StrCat("fetch reply has ", items.size(),
                                            " pages, the request had ",
                                            spec_.pages.size()));
  }
  const std::byte* rows = decoded.rows.data();
  wire_bytes_ = decoded.rows.size();
  // Attention reads 64-byte aligned rows; a body may have come otherwise.
  // An earlier try may have left a copy.
  copy_ = nullptr;
  if (reinterpret_cast<uintptr_t>(rows) % kAlignment != 0) {
    FARKV_ASSIGN_OR_RETURN(copy_, AllocateHostRows(decoded.rows.size()));
    std::memcpy(copy_.get(), rows, decoded.rows.size());
    rows = copy_.get();
  }
  FARKV_RETURN_IF_ERROR(AcceptPages(items, rows));
  if (copy_ == nullptr) body_ = std::move(reply->body);
  return absl::OkStatus();
}

// Looks at all pages, so that who recomputes rows knows which: the first error,
// but one of the reply itself before that of a page.
absl::Status FetchOperation::AcceptPages(std::span<const FetchReplyItem> items,
                                         const std::byte* rows) {
  blocks_.clear();
  decoded_.clear();
  std::vector<int32_t> bad;
  absl::Status status;
  for (size_t i = 0; i < spec_.pages.size(); ++i) {
    const FetchPage& page = spec_.pages[i];
    absl::Status about_page;
    if (items[i].code != absl::StatusCode::kOk) {
      about_page = absl::Status(
          items[i].code,
          absl::StrCat("layer ", spec_.layer, ", page ", page.page_index,
                       ": the node refused the page"));
    } else {
      FARKV_RETURN_IF_ERROR(CheckItem(items[i], page));
      about_page = AcceptRows(items[i], page, rows);
    }
    if (!about_page.ok()) bad.push_back(page.page_index);
    status.Update(about_page);
    rows += items[i].RowsBytes(spec_.geometry);
  }
  bad_pages_ = std::move(bad);
  return status;
}

absl::Status FetchOperation::AcceptRows(const FetchReplyItem& item,
                                        const FetchPage& page,
                                        const std::byte* rows) {
  const std::byte* block = rows;
  if (page.tier == Tier::kT1) {
    FARKV_RETURN_IF_ERROR(CheckRows(item, page, rows));
  } else {
    FARKV_RETURN_IF_ERROR(CheckParts(item, page, rows));
    FARKV_ASSIGN_OR_RETURN(HostRows decoded_page, Decode(page, rows));
    block = decoded_page.get();
    decoded_.push_back(std::move(decoded_page));
  }
  blocks_.push_back({page.page_index, page.slots, block, RunSource::kStaging});
  return absl::OkStatus();
}

absl::Status FetchOperation::CheckGeometry(const KvGeometry& found) const {
  KvGeometry asked = spec_.geometry;
  asked.num_layers = found.num_layers;  // not on the wire
  if (found == asked) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "layer ", spec_.layer, ": the reply has rows of ", found.num_kv_heads,
      " KV heads x ", found.head_dim, " ", DTypeName(found.dtype),
      ", asked for were ", asked.num_kv_heads, " x ", asked.head_dim, " ",
      DTypeName(asked.dtype)));
}

absl::Status FetchOperation::CheckItem(const FetchReplyItem& item,
                                       const FetchPage& page) const {
  const auto where = [&] {
    return absl::StrCat("layer ", spec_.layer, ", page ", page.page_index,
                        ": ");
  };
  if (item.page_index != page.page_index ||
      item.generation != page.generation) {
    return absl::DataLossError(absl::StrCat(
        where(), "the reply is for page ", item.page_index, ", generation ",
        item.generation.value, ", not generation ", page.generation.value));
  }
  if (item.tier != page.tier || item.t2_bits != page.t2_bits) {
    return absl::DataLossError(absl::StrCat(
        where(), "the reply is of tier ", static_cast<int>(item.tier), ", ",
        item.t2_bits, " T2 bits, asked for was tier ",
        static_cast<int>(page.tier), ", ", page.t2_bits, " T2 bits"));
  }
  for (size_t head = 0; head < item.rows.size(); ++head) {
    if (item.rows[head] == page.rows(head)) continue;
    return absl::DataLossError(
        absl::StrCat(where(), "the reply has other rows than were asked for"));
  }
  return absl::OkStatus();
}

// The decoder has seen to it that the rows of the reply's bitmaps are there.
absl::Status FetchOperation::CheckRows(const FetchReplyItem& item,
                                       const FetchPage& page,
                                       const std::byte* rows) const {
  if (!spec_.check_rows) return absl::OkStatus();
  const KvGeometry& geometry = spec_.geometry;
  const auto count = static_cast<size_t>(std::popcount(page.slots));
  const size_t bytes = geometry.VectorBytes();
  for (size_t i = 0; i < item.row_crcs.size(); ++i) {
    const size_t head = i / count;
    const size_t row = i % count;
    const uint32_t crc =
        RowCrc({rows + geometry.KeyOffset(count, head, row), bytes},
               {rows + geometry.ValueOffset(count, head, row), bytes});
    if (crc == item.row_crcs[i]) continue;
    return absl::DataLossError(absl::StrCat(
        "layer ", spec_.layer, ", page ", page.page_index, ": row ", row,
        " of head ", head, " has CRC32C 0x", absl::Hex(crc),
        ", it was stored with 0x", absl::Hex(item.row_crcs[i])));
  }
  return absl::OkStatus();
}

absl::Status FetchOperation::CheckParts(const FetchReplyItem& item,
                                        const FetchPage& page,
                                        const std::byte* parts) const {
  if (!spec_.check_rows) return absl::OkStatus();
  const size_t part_bytes =
      T2HeadLayout::Of(spec_.geometry, page.t2_bits).head_bytes;
  for (size_t i = 0; i < item.row_crcs.size(); ++i) {
    const uint32_t crc = Crc32c({parts + i * part_bytes, part_bytes});
    if (crc == item.row_crcs[i]) continue;
    return absl::DataLossError(absl::StrCat(
        "layer ", spec_.layer, ", page ", page.page_index, ": T2 part ", i,
        " of those asked for has CRC32C 0x", absl::Hex(crc),
        ", it was stored with 0x", absl::Hex(item.row_crcs[i])));
  }
  return absl::OkStatus();
}

// The wanted rows of every head, as a block of the KV dtype.
absl::StatusOr<HostRows> FetchOperation::Decode(const FetchPage& page,
                                                const std::byte* parts) const {
  const KvGeometry& geometry = spec_.geometry;
  const auto count = static_cast<size_t>(std::popcount(page.slots));
  const size_t part_bytes = T2HeadLayout::Of(geometry, page.t2_bits).head_bytes;
  FARKV_ASSIGN_OR_RETURN(HostRows block,
                         AllocateHostRows(geometry.BlockBytes(count)));
  for (size_t h = 0; h < static_cast<size_t>(geometry.num_kv_heads); ++h) {
    std::byte* keys = block.get() + geometry.KeyOffset(count, h, 0);
    std::byte* values = block.get() + geometry.ValueOffset(count, h, 0);
    if (page.rows(h) == 0) {
      std::memset(keys, 0, count * geometry.VectorBytes());
      std::memset(values, 0, count * geometry.VectorBytes());
      continue;
    }
    FARKV_RETURN_IF_ERROR(DecodeT2Head(
        geometry, page.t2_bits, {parts, part_bytes}, page.slots, keys, values));
    parts += part_bytes;
  }
  return block;
}

bool FetchOperation::done() const {
  absl::MutexLock lock(&mutex_);
  return done_;
}

absl::Status FetchOperation::Wait(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithTimeout(absl::Condition(&done_), timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("layer ", spec_.layer, ": no answer within ",
                     absl::FormatDuration(timeout)));
  }
  return status_;
}

}  // namespace farkv

#include "gpu_worker/tiering/cold_reads.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"

namespace farkv {
namespace {

// Rows of one request; more makes several, so that checking them overlaps.
constexpr uint64_t kRequestBytes = uint64_t{8} << 20;
// Fetches under way beyond which nothing is asked for ahead: a link has 256
// operations at a time.
constexpr int kMaxOperationsAhead = 160;
// How soon a fetch that was refused for want of room is tried again.
constexpr absl::Duration kFirstRefusedPause = absl::Milliseconds(1);
constexpr absl::Duration kLongestRefusedPause = absl::Milliseconds(64);

}  // namespace

std::string ColdReads::Where(const Sequence& sequence, const NodeLink& link,
                             int layer, int32_t page_index) {
  return absl::StrCat("sequence ", sequence.spec.request_id, ", node ",
                      link.node_id(), ", layer ", layer, ", page ", page_index);
}

ColdReads::ColdReads(const TieringOptions& options, const KvGeometry& geometry,
                     Device& device,
                     std::span<const std::unique_ptr<NodeLink>> links,
                     const Clock& clock)
    : options_(options),
      geometry_(geometry),
      device_(device),
      links_(links),
      clock_(clock) {}

bool ColdReads::HasPages() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const StepPart& part) {
    return !part.sequence->reads.pages.empty();
  });
}

std::vector<ReadPage> ColdReads::ListPages(const Sequence& sequence,
                                           const std::vector<bool>& pushdown,
                                           int64_t end) const {
  std::vector<ReadPage> pages;
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    const Page& page = sequence.table.page(i);
    const int64_t first = int64_t{i} * kPageTokens;
    if (first >= end) break;
    const uint64_t cold =
        page.cold() & SlotMask(0, static_cast<int>(std::min<int64_t>(
                                      kPageTokens, end - first)));
    if (cold == 0) continue;
    const RemotePage& remote = sequence.remote.pages[static_cast<size_t>(i)];
    ReadWay way = ReadWay::kFetch;
    if (remote.node >= 0 && !pushdown.empty() &&
        pushdown[static_cast<size_t>(remote.node)]) {
      way = ReadWay::kAttend;
    } else if (remote.node >= 0 && remote.places.front().map.data != nullptr &&
               LeaseHolds(sequence, remote.node)) {
      way = ReadWay::kMap;
    }
    pages.push_back({page.index, cold, remote.node, way});
  }
  return pages;
}

absl::Status ColdReads::Begin(std::span<StepPart> parts,
                              const std::vector<bool>& pushdown,
                              const std::vector<bool>& able,
                              std::vector<SequenceId>& failed) {
  parts_ = parts;
  ++step_number_;
  waited_ = absl::ZeroDuration();
  last_late_layer_ = -1;
  layer_in_use_ = -1;
  for (StepPart& part : parts_) {
    SequenceReads& reads = part.sequence->reads;
    SequenceLoss& loss = part.sequence->loss;
    loss.nodes.clear();
    loss.pages.clear();
    loss.is_repeated = false;
    // Nodes add attention up over heads; who needs it apart reads the rows. So
    // do rows that were scored when they were new.
    const bool pushes = part.num_rows == 1 && part.again.empty() &&
                        part.sequence->destruction.head_scores.empty();
    reads.pages =
        ListPages(*part.sequence, pushes ? pushdown : std::vector<bool>(),
                  part.again.empty() ? part.sequence->table.num_tokens()
                                     : part.again.back() + 1);
    if (pushes && !part.Selects(0)) LeaveToNodes(*part.sequence, able);
    reads.elsewhere.clear();
    for (const ReadPage& page : reads.pages) {
      if (page.way != ReadWay::kAttend) continue;
      reads.elsewhere.push_back(page.page_index);
    }
    if (reads.layers.empty() || reads.pages != reads.requested) {
      reads.layers.assign(static_cast<size_t>(geometry_.num_layers), {});
      reads.requested = reads.pages;
    }
  }
  FARKV_RETURN_IF_ERROR(CheckRowsAreThere(failed));
  FARKV_RETURN_IF_ERROR(CheckLayerFits());
  const int window = std::min(options_.prefetch_layers, geometry_.num_layers);
  for (int layer = 0; layer < window; ++layer) {
    for (StepPart& part : parts_) {
      if (part.Selects(layer)) continue;
      Request(*part.sequence, layer, /*ahead=*/layer > 0);
    }
  }
  return absl::OkStatus();
}

// Asks for the rows of `layer` unless that was done.
void ColdReads::Request(Sequence& sequence, int layer, bool ahead) {
  SequenceReads& reads = sequence.reads;
  if (reads.pages.empty()) return;
  if (!reads.layers[static_cast<size_t>(layer)].empty()) return;
  uint64_t bytes = 0;
  for (const ReadPage& page : reads.pages) {
    if (page.way != ReadWay::kFetch || page.node < 0) continue;
    bytes +=
        geometry_.BlockBytes(static_cast<size_t>(std::popcount(page.slots)));
  }
  if (bytes == 0) return;
  if (ahead && !HasRoomAhead(bytes, 1)) return;
  std::vector<ReadPage> pages;
  for (const ReadPage& page : reads.pages) {
    if (page.way == ReadWay::kFetch && page.node >= 0) pages.push_back(page);
  }
  Fetch(sequence, layer, pages, reads.layers[static_cast<size_t>(layer)]);
  NoteStaging(sequence);
}

std::vector<uint64_t> ColdReads::LiveOfT2(const Sequence& sequence,
                                          const ReadPage& read,
                                          const PagePlace& place,
                                          int layer) const {
  const Page& page = sequence.table.page(read.page_index);
  if (place.tier != Tier::kT2) return {};
  const uint64_t* live = page.layer_live(layer, geometry_.num_kv_heads);
  std::vector<uint64_t> rows(live, live + geometry_.num_kv_heads);
  for (uint64_t& bitmap : rows) bitmap &= read.slots;
  return rows;
}

void ColdReads::Fetch(Sequence& sequence, int layer,
                      std::span<const ReadPage> pages,
                      std::vector<std::shared_ptr<FetchOperation>>& fetches) {
  for (const auto& link : links_) {
    FetchSpec empty;
    empty.geometry = geometry_;
    empty.session = sequence.spec.session;
    empty.layer = layer;
    empty.step = step_number_;
    empty.timeout = options_.fetch_timeout;
    empty.check_rows = !options_.skip_row_checks;
    FetchSpec spec = empty;
    uint64_t bytes = 0;
    const auto send = [&] {
      if (spec.pages.empty()) return;
      fetches.push_back(
          FetchOperation::Start(std::exchange(spec, empty), *link, load_));
      bytes = 0;
    };
    for (const ReadPage& page : pages) {
      if (page.node != link->index()) continue;
      const RemotePage& remote =
          sequence.remote.pages[static_cast<size_t>(page.page_index)];
      const PagePlace& place = remote.places[static_cast<size_t>(layer)];
      spec.pages.push_back({page.page_index, place.generation, page.slots,
                            place.tier, place.t2_bits,
                            LiveOfT2(sequence, page, place, layer)});
      bytes +=
          geometry_.BlockBytes(static_cast<size_t>(std::popcount(page.slots)));
      if (bytes >= kRequestBytes || spec.pages.size() == kMaxMessageItems) {
        send();
      }
    }
    send();
  }
}

void ColdReads::FetchAllLayers(
    Sequence& sequence, std::span<const ReadPage> pages,
    std::vector<std::shared_ptr<FetchOperation>>& fetches) {
  for (int layer = 0; layer < geometry_.num_layers; ++layer) {
    Fetch(sequence, layer, pages, fetches);
  }
}

absl::StatusOr<std::span<const std::vector<ColdBlock>>> ColdReads::Layer(
    int layer, Stream& stream, std::vector<SequenceId>& failed) {
  if (layer_in_use_ >= 0 && layer_in_use_ != layer) {
    ReleaseLayer(layer_in_use_, stream);
  }
  layer_in_use_ = layer;
  if (!HasPages()) return std::span<const std::vector<ColdBlock>>();
  for (StepPart& part : parts_) {
    if (!part.Selects(layer)) Request(*part.sequence, layer, false);
  }
  const int window =
      std::min(options_.prefetch_layers, geometry_.num_layers - 1);
  for (int ahead = 1; ahead <= window; ++ahead) {
    const int next = (layer + ahead) % geometry_.num_layers;
    for (StepPart& part : parts_) {
      if (!part.Selects(next)) Request(*part.sequence, next, true);
    }
  }
  blocks_.resize(parts_.size());
  absl::Status status;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Sequence& sequence = *parts_[i].sequence;
    blocks_[i].clear();
    if (parts_[i].Selects(layer)) continue;
    status.Update(CollectBlocks(sequence, layer, sequence.reads.pages,
                                blocks_[i], failed));
  }
  FARKV_RETURN_IF_ERROR(status);
  for (std::vector<ColdBlock>& blocks : blocks_) {
    FARKV_RETURN_IF_ERROR(MoveToDevice(blocks, stream));
  }
  return std::span<const std::vector<ColdBlock>>(blocks_);
}

absl::Status ColdReads::CollectBlocks(Sequence& sequence, int layer,
                                      std::span<const ReadPage> pages,
                                      std::vector<ColdBlock>& blocks,
                                      std::vector<SequenceId>& failed) {
  absl::Status status = AddMapped(sequence, layer, pages, blocks);
  if (status.ok()) status = AddFetched(sequence, layer, blocks);
  if (absl::IsUnavailable(status)) failed.push_back(sequence.id);
  std::sort(blocks.begin(), blocks.end(),
            [](const ColdBlock& a, const ColdBlock& b) {
              return a.page_index < b.page_index;
            });
  return status;
}

bool ColdReads::HasRoomAhead(uint64_t bytes, int operations) const {
  // A promotion over many layers and nodes may be larger: it goes alone.
  return staging_bytes() + bytes <= options_.staging_bytes &&
         load_.operations.load(std::memory_order_relaxed) + operations <=
             std::max(kMaxOperationsAhead, operations);
}

// Two tries of fetch_timeout each; the margin is for checking the rows.
absl::Time ColdReads::FetchDeadline() const {
  return Clock::Boottime().Now() + 2 * options_.fetch_timeout +
         absl::Seconds(1);
}

absl::Status ColdReads::Await(std::shared_ptr<FetchOperation>& fetch,
                              NodeLink& link, absl::Time end) {
  absl::Duration pause = kFirstRefusedPause;
  for (;;) {
    absl::Status status = fetch->Wait(end - Clock::Boottime().Now());
    if (!absl::IsResourceExhausted(status) ||
        Clock::Boottime().Now() + pause >= end) {
      return status;
    }
    // Fetches of other layers and sequences make room when they end.
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestRefusedPause);
    fetch = FetchOperation::Start(fetch->spec(), link, load_);
  }
}

// A layer is late once in a step, however many fetches, nodes and sequences it
// is made of.
void ColdReads::NoteLate(Sequence& sequence, int layer) {
  const auto& fetches = sequence.reads.layers[static_cast<size_t>(layer)];
  if (std::all_of(fetches.begin(), fetches.end(),
                  [](const auto& fetch) { return fetch->done(); })) {
    return;
  }
  ++sequence.stats.late_fetches;
  if (std::exchange(last_late_layer_, layer) != layer) ++late_layers_;
}

// Which rows did not come. A node that answered and named pages that it has not
// may have the others.
void ColdReads::NoteLoss(Sequence& sequence, const FetchOperation& fetch,
                         int node, bool answers) {
  SequenceLoss& loss = sequence.loss;
  std::vector<int32_t> bad;
  if (fetch.done()) bad = fetch.bad_pages();
  if (answers && sequence.remote.distrusted.contains(node)) {
    loss.is_repeated = true;
  } else if (answers && !bad.empty()) {
    loss.pages.insert(bad.begin(), bad.end());
  } else {
    loss.nodes.insert(node);
  }
}

absl::Status ColdReads::AddFetched(Sequence& sequence, int layer,
                                   std::vector<ColdBlock>& blocks) {
  NoteLate(sequence, layer);
  for (auto& fetch : sequence.reads.layers[static_cast<size_t>(layer)]) {
    const int32_t page = fetch->spec().pages.front().page_index;
    const int node = sequence.remote.pages[static_cast<size_t>(page)].node;
    NodeLink& link = *links_[static_cast<size_t>(node)];
    const absl::Time began = Clock::Boottime().Now();
    const absl::Status status = Await(fetch, link, FetchDeadline());
    waited_ += Clock::Boottime().Now() - began;
    if (!status.ok()) {
      const std::string why = absl::StrCat(Where(sequence, link, layer, page),
                                           ": ", status.message());
      // So is a node that has had no room for all this time.
      const bool answers = link.healthy() && !absl::IsUnavailable(status);
      NoteLoss(sequence, *fetch, node, answers);
      if (answers) sequence.remote.distrusted.insert(node);
      return absl::UnavailableError(why);
    }
    blocks.insert(blocks.end(), fetch->blocks().begin(), fetch->blocks().end());
    sequence.stats.cold_bytes_fetched += static_cast<int64_t>(fetch->bytes());
    const auto rows =
        static_cast<int64_t>(fetch->bytes() / geometry_.RowBytes());
    sequence.stats.cold_rows_fetched += rows;
    sequence.CountReads(node, rows);
    sequence.stats.cold_mode = "prefetch";
  }
  return absl::OkStatus();
}

// Of a full device, which is no full T0: no step that stores or drops rows
// makes room there.
absl::Status ColdReads::NoDeviceMemory(const ColdBlock& block, size_t bytes,
                                       const absl::Status& why) const {
  return absl::FailedPreconditionError(absl::StrCat(
      "the device has no memory for ", FormatBytes(bytes),
      " of fetched rows, layer ", layer_in_use_, ", page ", block.page_index,
      ": a lower --t0-bytes, now ", FormatBytes(options_.t0_bytes),
      ", leaves more: ", why.message()));
}

// A device that cannot read host memory gets copies, in stream order.
absl::Status ColdReads::MoveToDevice(std::vector<ColdBlock>& blocks,
                                     Stream& stream) {
  if (device_.kind() == DeviceKind::kCpu) return absl::OkStatus();
  if (device_rows_ == nullptr) {
    device_rows_ = std::make_shared<std::vector<DeviceBuffer>>();
  }
  for (ColdBlock& block : blocks) {
    const size_t bytes =
        geometry_.BlockBytes(static_cast<size_t>(std::popcount(block.slots)));
    absl::StatusOr<DeviceBuffer> rows = device_.Allocate(bytes);
    if (!rows.ok()) return NoDeviceMemory(block, bytes, rows.status());
    stream.Copy(rows->data(), block.rows, bytes);
    block.rows = rows->data();
    device_rows_->push_back(*std::move(rows));
  }
  return absl::OkStatus();
}

// The layer's attention is enqueued: its staging lives until that has run.
void ColdReads::ReleaseLayer(int layer, Stream& stream) {
  using Fetches = std::vector<std::shared_ptr<FetchOperation>>;
  auto fetches = std::make_shared<std::vector<Fetches>>();
  for (StepPart& part : parts_) {
    Fetches& used = part.sequence->reads.layers[static_cast<size_t>(layer)];
    if (!used.empty()) fetches->push_back(std::exchange(used, {}));
  }
  auto rows = std::exchange(device_rows_, nullptr);
  if (fetches->empty() && rows == nullptr) return;
  if (stream.kind() == DeviceKind::kCpu) return;
  stream.Notify([fetches, rows] {});
}

void ColdReads::End(bool keep) {
  for (StepPart& part : parts_) {
    SequenceReads& reads = part.sequence->reads;
    if (reads.layers.empty()) continue;
    if (!keep) {
      for (auto& fetches : reads.layers) fetches.clear();
    } else if (layer_in_use_ >= 0) {
      reads.layers[static_cast<size_t>(layer_in_use_)].clear();
    }
  }
  device_rows_ = nullptr;
  parts_ = {};
  layer_in_use_ = -1;
}

}  // namespace farkv

// Cold rows that are read between steps, for policies that destroy some.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tiering/cold_reads.h"

namespace farkv {

std::vector<ReadPage> ColdReads::ColdPages(const Sequence& sequence) const {
  return ListPages(sequence, {}, sequence.table.num_tokens());
}

void ColdReads::FetchLayer(
    Sequence& sequence, int layer, std::span<const ReadPage> pages,
    std::vector<std::shared_ptr<FetchOperation>>& fetches) {
  std::vector<ReadPage> fetched;
  for (const ReadPage& page : pages) {
    if (page.way == ReadWay::kFetch && page.node >= 0) fetched.push_back(page);
  }
  if (!fetched.empty()) Fetch(sequence, layer, fetched, fetches);
}

absl::Status ColdReads::AwaitLayer(
    Sequence& sequence, int layer, std::span<const ReadPage> pages,
    std::vector<std::shared_ptr<FetchOperation>>& fetches, absl::Time end,
    std::vector<ColdBlock>& blocks) {
  absl::Status aborted;  // once for all pages of the layer
  for (const ReadPage& read : pages) {
    FARKV_RETURN_IF_ERROR(CheckPlace(sequence, read));
    if (read.way != ReadWay::kMap) continue;
    const absl::StatusOr<ColdBlock> block = MappedBlock(sequence, read, layer);
    if (absl::IsAborted(block.status())) {
      aborted.Update(block.status());
      continue;
    }
    FARKV_RETURN_IF_ERROR(block.status());
    blocks.push_back(*block);
  }
  FARKV_RETURN_IF_ERROR(aborted);
  for (auto& fetch : fetches) {
    const int32_t page = fetch->spec().pages.front().page_index;
    const int node = sequence.remote.pages[static_cast<size_t>(page)].node;
    NodeLink& link = *links_[static_cast<size_t>(node)];
    if (absl::Status status = Await(fetch, link, end); !status.ok()) {
      return absl::UnavailableError(absl::StrCat(
          Where(sequence, link, layer, page), ": ", status.message()));
    }
    blocks.insert(blocks.end(), fetch->blocks().begin(), fetch->blocks().end());
  }
  return absl::OkStatus();
}

}  // namespace farkv

#include "kernels/attention_t2.h"

#include <cstdio>
#include <cstdlib>

#include "common/page/page_format.h"
#include "common/page/t2_codec.h"

namespace farkv {

const PageRuns& LeafPage::Read(const KvGeometry& geometry, const PageRuns& page,
                               int head) {
  if (page.runs.empty() || page.runs[0].t2_bits == 0) return page;
  const Run& t2 = page.runs[0];
  const size_t vectors = kPageTokens * geometry.VectorBytes();
  if (block_.size() < 2 * vectors) block_.resize(2 * vectors);
  const size_t part_bytes = T2HeadLayout::Of(geometry, t2.t2_bits).head_bytes;
  const std::byte* part = t2.keys + static_cast<size_t>(head) * t2.head_stride;
  const absl::Status decoded =
      DecodeT2Head(geometry, t2.t2_bits, {part, part_bytes}, ~uint64_t{0},
                   block_.data(), block_.data() + vectors);
  if (!decoded.ok()) {
    std::fprintf(stderr, "attention: page %d, KV head %d: %s\n",
                 page.page_index, head, decoded.ToString().c_str());
    std::abort();
  }
  run_.keys = block_.data();
  run_.values = block_.data() + vectors;
  run_.head_stride = 0;
  run_.length = kPageTokens;
  run_.source = t2.source;
  page_ = page;
  page_.runs = {&run_, 1};
  return page_;
}

}  // namespace farkv

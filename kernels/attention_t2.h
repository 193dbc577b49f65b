// T2 rows in a leaf: one KV head of a page is dequantised into a block that
// stays in the cache of the thread that reads it next. The same bits as
// attention over rows that were decoded before. Internal to kernels/.
#ifndef FARKV_KERNELS_ATTENTION_T2_H_
#define FARKV_KERNELS_ATTENTION_T2_H_

#include <cstddef>
#include <vector>

#include "common/layout/kv_geometry.h"
#include "kernels/attention.h"

namespace farkv {

// One head of one page at full precision. Keeps its memory; thread-compatible.
class LeafPage {
 public:
  LeafPage() = default;
  LeafPage(const LeafPage&) = delete;  // points into itself

  // `page` itself when its rows are at full precision; else a page of the same
  // index and bitmaps whose one run holds head `head`, whatever head is asked
  // of it, until the next Read. Ends the process when the codes are damaged:
  // who gives a T2 run has checked it.
  const PageRuns& Read(const KvGeometry& geometry, const PageRuns& page,
                       int head);

 private:
  std::vector<std::byte> block_;  // 64 keys, then 64 values
  Run run_;
  PageRuns page_;
};

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_T2_H_

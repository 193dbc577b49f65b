// A memory node without its process: a directory with stored pages that decides
// (memory_node/data/decide_handler.h), and the same rows for whoever computes a
// decision beside it. Test only.
#ifndef FARKV_TESTS_UNIT_MEMORY_NODE_DECIDING_NODE_H_
#define FARKV_TESTS_UNIT_MEMORY_NODE_DECIDING_NODE_H_

#include <vector>

#include "common/base/thread_pool.h"
#include "memory_node/data/decide_handler.h"
#include "memory_node/data/t2_rows.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {

// The layer that tests decide on; its pages are the same on every node.
inline constexpr int32_t kDecidedLayer = 1;

class DecidingNode : public DirectoryFixture {
 public:
  explicit DecidingNode(std::vector<int32_t> pages) {
    Open();
    for (const int32_t page : pages) Store(page);
  }
  void TestBody() override {}

  void Store(int32_t page_index) {
    const PageName page{kDecidedLayer, page_index};
    const PagePlacement placement =
        directory_.Apply(Plan(++plans_, {page})).value().reserved[0];
    StoreTicket ticket =
        directory_.BeginStore(Caller(), page, placement.generation).value();
    FillPage(100 + static_cast<uint64_t>(page_index), ticket.pin.data());
    PageHeader header(ticket.pin.data(), kSmallGeometry);
    for (int head = 0; head < 2; ++head) header.set_live(head, ~0ull);
    EXPECT_TRUE(directory_.FinishStore(std::move(ticket), AllRows()).ok());
  }
  void CompressTo(int bits, int32_t page_index) {
    const PagePlacement moved =
        Compress(++plans_, ToT2({kDecidedLayer, page_index}, bits));
    EXPECT_TRUE(moved.status.ok()) << moved.status;
  }
  void Free(int32_t page_index) {
    EXPECT_TRUE(
        directory_.Apply(Plan(++plans_, {}, {{kDecidedLayer, page_index}}))
            .ok());
  }

  // A page's rows as a block of 64, as every other party would read them.
  std::vector<std::byte> Block(int32_t page_index) {
    const StoredPage page =
        directory_.PinStored(TestSession(1), {kDecidedLayer, page_index})
            .value();
    const KvGeometry& g = kSmallGeometry;
    std::vector<std::byte> block(g.BlockBytes(kPageTokens));
    if (page.identity.tier == Tier::kT1) {
      const std::byte* rows = page.pin.data() + PageLayout::T1(g).header_bytes;
      block.assign(rows, rows + block.size());
      return block;
    }
    for (int head = 0; head < g.num_kv_heads; ++head) {
      EXPECT_TRUE(DecodeT2Rows(g, page.identity.t2_bits, head, page.pin.data(),
                               block.data())
                      .ok());
    }
    return block;
  }

  DecideContext context() { return {directory_, threads_, log_, clock_}; }
  absl::StatusOr<EvictionReply> Decide(const EvictionCall& call) {
    return DecideEvictions(context(), call);
  }
  Directory& directory() { return directory_; }
  EvictionLog& log() { return log_; }
  ManualClock& clock() { return clock_; }
  size_t pins() const { return pool_.stats().pins + t2_pool_.stats().pins; }

 private:
  uint64_t plans_ = 0;
  ThreadPool threads_{2};
  EvictionLog log_;
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_MEMORY_NODE_DECIDING_NODE_H_

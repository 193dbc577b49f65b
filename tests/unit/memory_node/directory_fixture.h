// A directory over small heap pools and a manual clock.
#ifndef FARKV_TESTS_UNIT_MEMORY_NODE_DIRECTORY_FIXTURE_H_
#define FARKV_TESTS_UNIT_MEMORY_NODE_DIRECTORY_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/bf16.h"
#include "common/base/endian.h"
#include "common/base/random.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "memory_node/compress/compressor.h"
#include "memory_node/directory/directory.h"
#include "tests/testing/manual_clock.h"

namespace farkv {

inline constexpr KvGeometry kSmallGeometry{
    .num_layers = 3, .num_kv_heads = 2, .head_dim = 16};

inline SessionId TestSession(uint8_t number) {
  SessionId id;
  id.bytes.fill(number);
  return id;
}

// Fills every row of a T1 page with values between -1 and 1, and its CRCs.
inline void FillPage(uint64_t seed, std::byte* page) {
  const KvGeometry& g = kSmallGeometry;
  std::byte* rows = page + PageLayout::T1(g).header_bytes;
  for (size_t i = 0; i < g.BlockBytes(kPageTokens) / 2; ++i) {
    const double value = 2 * ToUnit(SplitMix64At(seed, i)) - 1;
    StoreLe(rows + 2 * i, FloatToBf16(static_cast<float>(value)));
  }
  PageHeader header(page, g);
  for (size_t head = 0; head < 2; ++head) {
    for (size_t slot = 0; slot < kPageTokens; ++slot) {
      header.set_row_crc(
          static_cast<int>(head), static_cast<int>(slot),
          RowCrc({rows + g.KeyOffset(kPageTokens, head, slot), g.VectorBytes()},
                 {rows + g.ValueOffset(kPageTokens, head, slot),
                  g.VectorBytes()}));
    }
  }
  header.Seal();
}

class DirectoryFixture : public ::testing::Test {
 protected:
  static constexpr size_t kPages = 8;  // of the pool

  static PagePoolOptions PoolOptions() {
    PagePoolOptions options;
    options.slab_bytes = kPages * PageLayout::T1(kSmallGeometry).stride;
    options.capacity_bytes = options.slab_bytes;
    options.high_watermark = 10000;
    return options;
  }
  static DirectoryOptions Options() {
    DirectoryOptions options;
    options.epoch = Epoch{77};
    options.handshake = TestHandshake();
    options.max_lease = absl::Seconds(10);
    return options;
  }
  static Handshake TestHandshake() {
    Handshake handshake;
    handshake.page_format_version = kPageFormatVersion;
    handshake.kernel_target = "TEST+none";
    return handshake;
  }

  static OpenSessionCall OpenCall(uint8_t number = 1) {
    OpenSessionCall call;
    call.handshake = TestHandshake();
    call.session = TestSession(number);
    call.tenant = "tenant";
    call.worker_id = "worker";
    call.geometry = kSmallGeometry;
    call.lease = absl::Seconds(5);
    return call;
  }
  SessionGrant Open(uint8_t number = 1) {
    return directory_.Open(OpenCall(number)).value();
  }
  static TierPlanCall Plan(uint64_t sequence_number,
                           std::vector<PageName> reserve = {},
                           std::vector<PageName> free = {},
                           uint8_t number = 1) {
    TierPlanCall call;
    call.session = TestSession(number);
    call.epoch = Epoch{77};
    call.sequence_number = sequence_number;
    call.reserve = std::move(reserve);
    call.free = std::move(free);
    return call;
  }
  static DataCaller Caller(uint8_t number = 1) {
    return {TestSession(number), Epoch{77}, "tenant"};
  }
  static std::vector<uint64_t> AllRows() { return {~0ull, ~0ull}; }

  static TierChange ToT2(PageName page, int bits = 8) {
    return {page, Tier::kT2, bits, {}};
  }
  PagePlacement Compress(uint64_t sequence_number, const TierChange& change) {
    TierPlanCall plan = Plan(sequence_number);
    plan.tier_changes = {change};
    return directory_.Apply(plan).value().moved.at(0);
  }

  // Reserves one page and stores all rows of it.
  PagePlacement ReserveAndStore(uint64_t sequence_number, PageName page) {
    const PagePlacement placement =
        directory_.Apply(Plan(sequence_number, {page})).value().reserved[0];
    StoreTicket ticket =
        directory_.BeginStore(Caller(), page, placement.generation).value();
    FillPage(sequence_number, ticket.pin.data());
    PageHeader header(ticket.pin.data(), kSmallGeometry);
    for (int head = 0; head < 2; ++head) header.set_live(head, ~0ull);
    EXPECT_TRUE(directory_.FinishStore(std::move(ticket), AllRows()).ok());
    return placement;
  }

  ManualClock clock_;
  PagePool pool_{PoolOptions(), AllocateHeapSlab, clock_};
  PagePool t2_pool_{PoolOptions(), AllocateHeapSlab, clock_, &pool_};
  Directory directory_{Options(), pool_, clock_, {&t2_pool_, CompressPage}};
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_MEMORY_NODE_DIRECTORY_FIXTURE_H_

// A directory over a small heap pool and a manual clock.
#ifndef FARKV_TESTS_UNIT_MEMORY_NODE_DIRECTORY_FIXTURE_H_
#define FARKV_TESTS_UNIT_MEMORY_NODE_DIRECTORY_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
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

  // Reserves one page and stores all rows of it, as far as the directory can
  // tell.
  PagePlacement ReserveAndStore(uint64_t sequence_number, PageName page) {
    const PagePlacement placement =
        directory_.Apply(Plan(sequence_number, {page})).value().reserved[0];
    StoreTicket ticket =
        directory_.BeginStore(Caller(), page, placement.generation).value();
    PageHeader header(ticket.pin.data(), kSmallGeometry);
    for (int head = 0; head < 2; ++head) header.set_live(head, ~0ull);
    EXPECT_TRUE(directory_.FinishStore(std::move(ticket), AllRows()).ok());
    return placement;
  }

  ManualClock clock_;
  PagePool pool_{PoolOptions(), AllocateHeapSlab, clock_};
  Directory directory_{Options(), pool_, clock_};
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_MEMORY_NODE_DIRECTORY_FIXTURE_H_

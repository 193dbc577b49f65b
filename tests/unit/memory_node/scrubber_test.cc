#include "memory_node/data/scrubber.h"

#include "memory_node/data/row_copy.h"
#include "tests/unit/memory_node/directory_fixture.h"
#include "tests/unit/memory_node/stored_rows.h"

namespace farkv {
namespace {

class ScrubberTest : public DirectoryFixture {
 protected:
  static bool Never() { return false; }

  void StorePage(uint64_t number, PageName page) {
    const auto placement =
        directory_.Apply(Plan(number, {page})).value().reserved[0];
    StoreTicket ticket =
        directory_.BeginStore(Caller(), page, placement.generation).value();
    ASSERT_TRUE(StoreRows(kSmallGeometry, AllRows(),
                          CrcsOf(kSmallGeometry, content_, AllRows()),
                          PackRows(kSmallGeometry, content_, AllRows()),
                          ticket.pin.data())
                    .ok());
    ASSERT_TRUE(directory_.FinishStore(std::move(ticket), AllRows()).ok());
  }

  const TestPage content_{kSmallGeometry, 1};
  Scrubber scrubber_{directory_, Counter(), uint64_t{1} << 40};
};

TEST_F(ScrubberTest, SoundPagesHaveNoMismatchAndReservedOnesAreSkipped) {
  Open();
  StorePage(1, {0, 0});
  StorePage(2, {1, 0});
  directory_.Apply(Plan(3, {{2, 0}})).value();

  const auto result = scrubber_.Run(std::nullopt, Never);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->pages, 2u);
  EXPECT_EQ(result->rows, 2u * 2 * kPageTokens);
  EXPECT_EQ(result->mismatches, 0u);
}

TEST_F(ScrubberTest, EveryDamagedRowIsCounted) {
  Open();
  StorePage(1, {0, 0});
  {
    auto page = directory_.PinStored(TestSession(1), {0, 0}).value();
    std::byte* payload =
        page.pin.data() + PageLayout::T1(kSmallGeometry).header_bytes;
    payload[kSmallGeometry.KeyOffset(kPageTokens, 0, 3)] ^= std::byte{1};
    payload[kSmallGeometry.ValueOffset(kPageTokens, 1, 63)] ^= std::byte{128};
  }

  EXPECT_EQ(scrubber_.Run(TestSession(1), Never).value().mismatches, 2u);
}

TEST_F(ScrubberTest, ADamagedHeaderIsCounted) {
  Open();
  StorePage(1, {0, 0});
  directory_.PinStored(TestSession(1), {0, 0}).value().pin.data()[24] ^=
      std::byte{1};

  EXPECT_EQ(scrubber_.Run(TestSession(1), Never).value().mismatches, 1u);
}

TEST_F(ScrubberTest, EveryDamagedHeadOfACompressedPageIsCounted) {
  Open();
  ReserveAndStore(1, {0, 0});
  ReserveAndStore(2, {0, 1});
  ASSERT_TRUE(Compress(3, ToT2({0, 0}, 4)).status.ok());
  const auto sound = scrubber_.Run(TestSession(1), Never).value();
  EXPECT_EQ(sound.pages, 2u);
  EXPECT_EQ(sound.rows, 2u * 2 * kPageTokens);
  EXPECT_EQ(sound.mismatches, 0u);
  {
    auto page = directory_.PinStored(TestSession(1), {0, 0}).value();
    page.pin.data()[PageLayout::T2(kSmallGeometry, 4).header_bytes +
                    T2HeadLayout::Of(kSmallGeometry, 4).head_bytes] ^=
        std::byte{1};
  }

  EXPECT_EQ(scrubber_.Run(TestSession(1), Never).value().mismatches, 1u);
}

TEST_F(ScrubberTest, AnUnknownSessionIsNotFoundAndACancelledRunEnds) {
  Open();
  StorePage(1, {0, 0});

  EXPECT_TRUE(absl::IsNotFound(scrubber_.Run(TestSession(9), Never).status()));
  EXPECT_TRUE(absl::IsCancelled(
      scrubber_.Run(std::nullopt, [] { return true; }).status()));
}

TEST_F(ScrubberTest, ACancelledRunDoesNotWaitForItsRate) {
  Open();
  StorePage(1, {0, 0});
  StorePage(2, {1, 0});
  Scrubber slow(directory_, Counter(), 1);  // hours for a page
  int asked = 0;

  const auto result =
      slow.Run(TestSession(1), [&asked] { return ++asked > 1; });

  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
}

}  // namespace
}  // namespace farkv

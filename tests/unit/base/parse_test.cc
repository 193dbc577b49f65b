#include "common/base/parse.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using testing::HasSubstr;

// The message of a refusal; it must quote `text`, so that the user sees which
// of the flags was meant.
template <typename T>
std::string Refusal(const absl::StatusOr<T>& result, const std::string& text) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << text;
  const std::string message(result.status().message());
  EXPECT_THAT(message, HasSubstr("\"" + text + "\""));
  return message;
}

TEST(ParseBytesTest, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("3B").value(), 3u);
  EXPECT_EQ(ParseBytes("4KiB").value(), 4096u);
  EXPECT_EQ(ParseBytes("512MiB").value(), uint64_t{512} << 20);
  EXPECT_EQ(ParseBytes("64GiB").value(), uint64_t{64} << 30);
  EXPECT_EQ(ParseBytes("2TiB").value(), uint64_t{2} << 40);
  EXPECT_EQ(ParseBytes("5KB").value(), 5000u);
  EXPECT_EQ(ParseBytes("5MB").value(), 5000000u);
  EXPECT_EQ(ParseBytes("5GB").value(), 5000000000u);
  EXPECT_EQ(ParseBytes("5TB").value(), 5000000000000u);
  EXPECT_EQ(ParseBytes("0B").value(), 0u);
}

TEST(ParseBytesTest, ANumberWithoutAUnitOrAUnitWithoutANumberIsRefused) {
  for (const char* text : {"", "64", "GiB", "1.5GiB", "-1B", "4 kib", "4Kib",
                           "4KiBs", "0x10B", "KiB4"}) {
    EXPECT_THAT(Refusal(ParseBytes(text), text), HasSubstr("with a unit"));
  }
}

TEST(ParseBytesTest, TheLargestSizeIsTakenAndTheNextOneRefused) {
  EXPECT_EQ(ParseBytes("18446744073709551615B").value(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseBytes("16777215TiB").value(), uint64_t{16777215} << 40);
  EXPECT_THAT(Refusal(ParseBytes("16777216TiB"), "16777216TiB"),
              HasSubstr("64 bits"));
  Refusal(ParseBytes("18446744073709551616B"), "18446744073709551616B");
}

TEST(FormatBytesTest, UsesTheLargestUnitThatDivides) {
  EXPECT_EQ(FormatBytes(68719476736), "64GiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 40), "3TiB");
  EXPECT_EQ(FormatBytes(1536), "1536B");
  EXPECT_EQ(FormatBytes(uint64_t{1536} << 10), "1536KiB");
  EXPECT_EQ(FormatBytes(1000), "1000B");
  EXPECT_EQ(FormatBytes(0), "0B");
}

TEST(FormatBytesTest, ParsesBack) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4096},
                         uint64_t{123} << 20, uint64_t{1} << 50}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)).value(), bytes);
  }
}

TEST(ParseDurationTest, TakesUnitsAndSumsOfThem) {
  EXPECT_EQ(ParseDuration("500ms").value(), absl::Milliseconds(500));
  EXPECT_EQ(ParseDuration("10s").value(), absl::Seconds(10));
  EXPECT_EQ(ParseDuration("1m30s").value(), absl::Seconds(90));
  EXPECT_EQ(ParseDuration("1.5us").value(), absl::Nanoseconds(1500));
}

TEST(ParseDurationTest, RefusesWhatIsNoPositiveSpan) {
  for (const char* text :
       {"", "10", "0", "0s", "-5s", "5 s", "s", "inf", "-inf"}) {
    EXPECT_THAT(Refusal(ParseDuration(text), text), HasSubstr("positive"));
  }
}

TEST(ParseRatioTest, HoldsTenThousandths) {
  EXPECT_EQ(ParseRatio("0").value(), 0);
  EXPECT_EQ(ParseRatio("0.3").value(), 3000);
  EXPECT_EQ(ParseRatio("0.29").value(), 2900);
  EXPECT_EQ(ParseRatio("0.0001").value(), 1);
  EXPECT_EQ(ParseRatio("1").value(), 10000);
}

TEST(ParseRatioTest, RefusesWhatLiesOutside) {
  for (const char* text : {"", "half", "-0.1", "1.01", "nan", "inf", "30%"}) {
    EXPECT_THAT(Refusal(ParseRatio(text), text), HasSubstr("[0, 1]"));
  }
}

}  // namespace
}  // namespace farkv

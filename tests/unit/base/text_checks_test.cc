#include "common/base/text_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farkv {
namespace {

using ::testing::HasSubstr;

std::string Why(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(TextChecksTest, InvalidUtf8IsFound) {
  EXPECT_EQ(FindInvalidUtf8("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            std::string::npos);
  EXPECT_EQ(FindInvalidUtf8("ab\xff"), 2u);
  EXPECT_EQ(FindInvalidUtf8("\xc3"), 0u) << "cut";
  EXPECT_EQ(FindInvalidUtf8("a\xc0\xaf"), 1u) << "overlong";
  EXPECT_EQ(FindInvalidUtf8("\xed\xa0\x80"), 0u) << "surrogate";
  EXPECT_EQ(FindInvalidUtf8("\xf4\x90\x80\x80"), 0u) << "above U+10FFFF";
  EXPECT_EQ(FindInvalidUtf8("\xe2\x82x"), 0u);
}

TEST(TextChecksTest, PrintableTextHasNoControlCharacters) {
  EXPECT_TRUE(CheckPrintable("/var/lib/gr\xc3\xbcn").ok());
  EXPECT_THAT(Why(CheckPrintable("a\nb")),
              HasSubstr("'a\\nb' has a control character at byte 1"));
  EXPECT_THAT(Why(CheckPrintable(std::string("a\0b", 3))), HasSubstr("byte 1"));
  EXPECT_THAT(Why(CheckPrintable("a\xff")), HasSubstr("not UTF-8 at byte 1"));
}

TEST(TextChecksTest, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xc3\xa9z"), "a\xc3\xa9z");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xffz\xc3"), "a\xef\xbf\xbdz\xef\xbf\xbd");
}

TEST(TextChecksTest, ALongTextIsShownCut) {
  const std::string shown = ShownText(std::string(300, 'x'));
  EXPECT_EQ(shown, "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(ShownText("gr\xc3\xbcn"), "'gr\xc3\xbcn'");
}

}  // namespace
}  // namespace farkv

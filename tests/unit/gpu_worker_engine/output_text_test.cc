#include "gpu_worker/engine/output_text.h"

#include <gtest/gtest.h>

namespace farkv {
namespace {

TEST(OutputTextTest, AStopTextIsFoundOverPieceBorders) {
  OutputText text({"stop"}, false);

  EXPECT_EQ(text.Push("go s"), "go ");
  EXPECT_EQ(text.Push("to"), "");
  EXPECT_EQ(text.Push("p!"), "");

  EXPECT_EQ(text.matched(), "stop");
  EXPECT_EQ(text.Push("more"), "");
  EXPECT_EQ(text.Flush(), "");
}

TEST(OutputTextTest, AFalseStartIsSentLater) {
  OutputText text({"stop"}, false);

  EXPECT_EQ(text.Push("sto"), "");
  EXPECT_EQ(text.Push("re"), "store");
  EXPECT_FALSE(text.matched().has_value());
}

TEST(OutputTextTest, TheEarliestMatchWinsAndMayBeIncluded) {
  OutputText text({"bb", "ab"}, true);

  EXPECT_EQ(text.Push("xabb"), "xab");
  EXPECT_EQ(text.matched(), "ab");
}

TEST(OutputTextTest, WhatIsHeldBackComesOutAtTheEnd) {
  OutputText text({"stop"}, false);
  text.Push("almost sto");

  EXPECT_EQ(text.Flush(), "sto");
}

TEST(OutputTextTest, AnUnfinishedCharacterWaits) {
  OutputText text({}, false);

  EXPECT_EQ(text.Push("a\xc3"), "a");
  EXPECT_EQ(text.Push("\xa9"), "\xc3\xa9");
  EXPECT_EQ(text.Push("\xf0\x9f\x99"), "");
  EXPECT_EQ(text.Push("\x82"), "\xf0\x9f\x99\x82");
}

}  // namespace
}  // namespace farkv

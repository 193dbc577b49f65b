#include "gpu_worker/engine/output_text.h"

#include <gtest/gtest.h>

#include "common/base/text_checks.h"

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

TEST(OutputTextTest, AnUnfinishedCharacterAtTheEndIsReplaced) {
  OutputText text({}, false);

  EXPECT_EQ(text.Push("a\xf0\x9f\x99"), "a");
  EXPECT_EQ(text.Flush(), "\xef\xbf\xbd");
  EXPECT_EQ(text.Flush(), "");
}

TEST(OutputTextTest, BytesThatCanBecomeNoCharacterAreReplacedAtOnce) {
  OutputText text({}, false);

  EXPECT_EQ(text.Push("\x80"), "\xef\xbf\xbd");
  EXPECT_EQ(text.Push("\xe2\x82"), "");
  EXPECT_EQ(text.Push("b"),
            "\xef\xbf\xbd"
            "b");
  EXPECT_EQ(text.Push("\xed\xa0"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(OutputTextTest, AStopTextOfSeveralBytesIsFoundByteByByte) {
  OutputText text({"\xe7\xb5\x82\xe3\x82\x8f"}, false);
  std::string sent;
  for (const char byte :
       std::string("a\xe7\xb5\x82 \xe7\xb5\x82\xe3\x82\x8f!")) {
    sent += text.Push(std::string(1, byte));
  }

  EXPECT_EQ(sent, "a\xe7\xb5\x82 ");
  EXPECT_TRUE(text.matched().has_value());
}

// Whatever the bytes are, what is sent is UTF-8 and little is held back.
TEST(OutputTextTest, EveryDeltaIsWholeCharacters) {
  uint32_t state = 1;
  const auto random = [&state] { return (state = state * 1664525 + 1) >> 16; };
  const std::string bytes = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\xff\xed\xa0";
  for (int run = 0; run < 2000; ++run) {
    OutputText text({"\xc3\xa9\xe2\x82\xac", "aa\xe2\x82\xac"}, run % 2 == 0);
    size_t pushed = 0, sent = 0;
    for (int i = 0; i < 30 && !text.matched(); ++i) {
      const std::string piece =
          bytes.substr(random() % bytes.size(), random() % 4);
      const std::string delta = text.Push(piece);
      pushed += piece.size();
      sent += delta.size();
      ASSERT_EQ(FindInvalidUtf8(delta), std::string::npos);
      if (!text.matched()) {
        ASSERT_LE(pushed, sent + 5 + 4);
      }
    }
    const std::string rest = text.Flush();
    ASSERT_EQ(FindInvalidUtf8(rest), std::string::npos);
  }
}

TEST(OutputTextTest, AForcedPieceIsSentWholeAndStopsNothing) {
  OutputText text({"ab"}, false);
  EXPECT_EQ(text.Push("a"), "");
  EXPECT_EQ(text.PushForced("bxab"), "abxab");
  EXPECT_EQ(text.matched(), std::nullopt);
  EXPECT_EQ(text.Push("yab"), "y");
  EXPECT_EQ(text.matched(), "ab");
}

TEST(OutputTextTest, TheFirstSpaceOfATextIsNotSent) {
  OutputText text({}, false);
  text.DropFirstSpace();

  EXPECT_EQ(text.Push(""), "");
  EXPECT_EQ(text.Push(" a"), "a");
  EXPECT_EQ(text.Push(" b"), " b");
}

}  // namespace
}  // namespace farkv

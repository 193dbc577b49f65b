// The lines of the full screen of `top`.
#include "admin_cli/top_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/admin_cli/top_samples.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Nodes n0 to n9 and one worker.
TopTables TenNodes() {
  TopTables tables;
  std::vector<ProcessSample> samples;
  for (int i = 0; i < 10; ++i) {
    samples.push_back(SampleOf(false, "n" + std::to_string(i), 1, {}));
    samples.back().process.set_sessions(i);
  }
  samples.push_back(SampleOf(true, "w", 1, {}));
  tables.Add(std::move(samples), absl::UnixEpoch());
  return tables;
}

class TopLayoutTest : public ::testing::Test {
 protected:
  std::vector<std::string> Lines(size_t height, size_t width = 200) {
    std::vector<std::string> lines;
    for (const ScreenLine& line : LayOut(tables_.Summary(), tables_.Tables(),
                                         false, height, width, view_)) {
      lines.push_back(line.text);
    }
    return lines;
  }
  void Keys(std::initializer_list<TopKey> keys) {
    for (TopKey key : keys) Press(key, tables_.Tables(), view_);
  }

  TopTables tables_ = TenNodes();
  TopView view_;
};

TEST_F(TopLayoutTest, AllTablesAreThereWhenThereIsRoom) {
  const std::vector<std::string> lines = Lines(40);

  EXPECT_THAT(lines[0], HasSubstr("10/10 nodes"));
  EXPECT_THAT(lines[2], StartsWith("NODE "));
  EXPECT_THAT(lines[3], StartsWith("n0 "));
  EXPECT_THAT(lines[12], StartsWith("n9 "));
  EXPECT_THAT(lines[14], StartsWith("OWNER "));
  EXPECT_THAT(lines.back(), StartsWith("w "));
}

TEST_F(TopLayoutTest, ASummaryThatIsTooLongIsBrokenBetweenItsParts) {
  const std::vector<std::string> lines = Lines(40, 60);

  EXPECT_THAT(lines[0], ::testing::EndsWith(" sessions"));
  EXPECT_THAT(lines[1], StartsWith("stored -"));
  EXPECT_THAT(lines[2], StartsWith("tokens/s -"));
  EXPECT_THAT(lines[3], StartsWith("q quit"));
}

TEST_F(TopLayoutTest, NoSizeIsExceeded) {
  for (size_t height = 0; height < 25; ++height) {
    for (size_t width : {size_t{0}, size_t{1}, size_t{7}, size_t{80}}) {
      for (size_t focus = 0; focus < TopTables::kTables; ++focus) {
        view_ = TopView();
        view_.focus = focus;
        view_.zoomed = height % 2 == 1;
        view_.first_row = 5;
        const std::vector<std::string> lines = Lines(height, width);
        EXPECT_LE(lines.size(), height);
        for (const std::string& line : lines) EXPECT_LE(line.size(), width);
      }
    }
  }
}

TEST_F(TopLayoutTest, ArrowsScrollAsFarAsThereAreRows) {
  for (int i = 0; i < 100; ++i) {
    Keys({TopKey::kDown});
    Lines(7);  // titles and four rows
  }
  EXPECT_THAT(Lines(7)[3], StartsWith("n6 "));
  EXPECT_THAT(Lines(7)[6], StartsWith("n9 "));
  Keys({TopKey::kUp});
  EXPECT_THAT(Lines(7)[3], StartsWith("n5 "));
  // What has room again is drawn back.
  EXPECT_THAT(Lines(40)[3], StartsWith("n0 "));
}

TEST_F(TopLayoutTest, SortGoesThroughTheColumnsAndBack) {
  Keys({TopKey::kSort, TopKey::kSort, TopKey::kSort});  // node, state, sessions
  EXPECT_EQ(view_.sort_by[0], "-sessions");
  EXPECT_THAT(Lines(40)[2], HasSubstr("by -sessions"));
  EXPECT_THAT(Lines(40)[3], StartsWith("n9 "));

  Keys({TopKey::kReverse});
  EXPECT_THAT(Lines(40)[3], StartsWith("n0 "));

  const size_t columns = tables_.Tables()[0].columns().size();
  for (size_t i = 3; i < columns + 1; ++i) Keys({TopKey::kSort});
  EXPECT_EQ(view_.sort_by[0], "");
}

TEST_F(TopLayoutTest, ZoomLeavesTheTableInFocusOnly) {
  Keys({TopKey::kNext, TopKey::kNext, TopKey::kZoom});

  const std::vector<std::string> lines = Lines(40);

  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[2], StartsWith("WORKER "));
  Keys({TopKey::kNext});
  EXPECT_THAT(Lines(40)[2], StartsWith("NODE "));
}

TEST_F(TopLayoutTest, WhatIsNoAsciiIsOneCharacterEach) {
  tables_.Add({SampleOf(false, "n\xc3\xa9", 1, {})}, absl::UnixEpoch());

  EXPECT_THAT(Lines(40)[3], StartsWith("n?? "));
}

}  // namespace
}  // namespace farkv

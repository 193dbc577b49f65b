// What the full screen of `top` shows: lines of text for a terminal of some
// size, and what keys do to it. Pure.
#ifndef FARKV_ADMIN_CLI_TOP_LAYOUT_H_
#define FARKV_ADMIN_CLI_TOP_LAYOUT_H_

#include <array>
#include <string>
#include <vector>

#include "admin_cli/output.h"
#include "admin_cli/top_tables.h"

namespace farkv {

// How the operator looks at the tables.
struct TopView {
  size_t focus = 0;  // a table
  std::array<std::string, TopTables::kTables> sort_by;
  bool zoomed = false;   // only the table in focus
  size_t first_row = 0;  // of the table in focus, that is shown
};

enum class TopKey { kNext, kSort, kReverse, kZoom, kUp, kDown };

// `tables` as they are now: their columns and rows bound what there is.
void Press(TopKey key, const std::array<Output, TopTables::kTables>& tables,
           TopView& view);

struct ScreenLine {
  enum class Style { kPlain, kSummary, kTitles, kFocusedTitles, kKeys };
  std::string text;  // printable ASCII, at most as wide as the terminal
  Style style = Style::kPlain;
};

// At most `height` lines of at most `width` characters; any size will do.
// `first_row` is drawn back when the table has become shorter.
std::vector<ScreenLine> LayOut(
    const std::string& summary,
    const std::array<Output, TopTables::kTables>& tables, bool wide,
    size_t height, size_t width, TopView& view);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_TOP_LAYOUT_H_

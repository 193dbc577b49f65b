#include "admin_cli/top_layout.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace farkv {
namespace {

using Tables = std::array<Output, TopTables::kTables>;
using Style = ScreenLine::Style;

constexpr char kKeys[] =
    "q quit  Tab table  s sort  r reverse  z zoom  arrows scroll";

std::vector<std::string> LinesOf(const Output& table, bool wide,
                                 const std::string& sort_by) {
  OutputOptions options;
  options.format = wide ? "wide" : "table";
  options.sort_by = sort_by;
  std::ostringstream text;
  table.Print(options, text);
  std::vector<std::string> lines = absl::StrSplit(text.str(), '\n');
  lines.pop_back();  // behind the last end of line
  return lines;
}

// Where a column does not count as one character the frame would be torn.
std::string Ascii(std::string text, size_t width) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; },
      '?');
  if (text.size() > width) text.resize(width);
  return text;
}

// Titles and as many rows as there is room for; of the table in focus from
// `first` on.
void AddTable(const std::vector<std::string>& lines, size_t first, size_t room,
              Style titles, std::vector<ScreenLine>& screen) {
  if (room == 0) return;
  screen.push_back({lines.front(), titles});
  for (size_t i = first + 1; i < lines.size() && i - first < room; ++i) {
    screen.push_back({lines[i], Style::kPlain});
  }
}

// The summary, in several lines where it is too long for one.
void AddSummary(const std::string& summary, size_t width,
                std::vector<ScreenLine>& screen) {
  std::string line;
  for (absl::string_view part : absl::StrSplit(summary, "; ")) {
    if (!line.empty() && line.size() + 2 + part.size() > width) {
      screen.push_back({std::exchange(line, ""), Style::kSummary});
    }
    absl::StrAppend(&line, line.empty() ? "" : "; ", part);
  }
  screen.push_back({line, Style::kSummary});
}

std::string TitlesOf(const std::string& titles, const std::string& sort_by) {
  return sort_by.empty() ? titles : absl::StrCat(titles, "   by ", sort_by);
}

}  // namespace

void Press(TopKey key, const Tables& tables, TopView& view) {
  std::string& sort_by = view.sort_by[view.focus];
  const std::vector<Output::Column>& columns = tables[view.focus].columns();
  switch (key) {
    case TopKey::kNext:
      view.focus = (view.focus + 1) % tables.size();
      view.first_row = 0;
      return;
    case TopKey::kSort: {
      // As it comes, then each column, numbers from the largest.
      const std::string name =
          sort_by.starts_with('-') ? sort_by.substr(1) : sort_by;
      const auto now = std::find_if(
          columns.begin(), columns.end(),
          [&name](const auto& column) { return column.key == name; });
      const auto next = now == columns.end() ? columns.begin() : std::next(now);
      sort_by = next == columns.end()
                    ? ""
                    : absl::StrCat(next->show == nullptr ? "" : "-", next->key);
      return;
    }
    case TopKey::kReverse:
      if (sort_by.empty()) return;
      sort_by = sort_by.starts_with('-') ? sort_by.substr(1) : "-" + sort_by;
      return;
    case TopKey::kZoom:
      view.zoomed = !view.zoomed;
      return;
    case TopKey::kUp:
      if (view.first_row > 0) --view.first_row;
      return;
    case TopKey::kDown:
      ++view.first_row;  // LayOut bounds it
      return;
  }
}

std::vector<ScreenLine> LayOut(const std::string& summary, const Tables& tables,
                               bool wide, size_t height, size_t width,
                               TopView& view) {
  std::vector<ScreenLine> screen;
  AddSummary(summary, width, screen);
  screen.push_back({kKeys, Style::kKeys});
  const size_t head = screen.size();
  for (size_t t = 0; t < tables.size(); ++t) {
    const bool focused = t == view.focus;
    if (view.zoomed && !focused) continue;
    const auto lines = LinesOf(tables[t], wide, view.sort_by[t]);
    if (screen.size() > head) screen.push_back({"", Style::kPlain});
    const size_t room = height - std::min(height, screen.size());
    size_t first = 0;
    if (focused) {
      const size_t rows = lines.size() - 1;
      const size_t shown = std::min(rows, room > 0 ? room - 1 : 0);
      view.first_row = std::min(view.first_row, rows - shown);
      first = view.first_row;
    }
    std::vector<std::string> marked = lines;
    marked.front() = TitlesOf(marked.front(), view.sort_by[t]);
    AddTable(marked, first, room,
             focused ? Style::kFocusedTitles : Style::kTitles, screen);
  }
  if (screen.size() > height) screen.resize(height);
  for (ScreenLine& line : screen) line.text = Ascii(line.text, width);
  return screen;
}

}  // namespace farkv

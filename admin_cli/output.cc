#include "admin_cli/output.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "admin_cli/yaml.h"
#include "common/base/parse.h"
#include "common/base/session_handle.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

// Names come from other processes: nothing in them may drive the terminal.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); },
      '?');
  return text;
}

std::string Text(const nlohmann::json& value) {
  if (!value.is_string()) return value.dump();
  return Printable(value.get<std::string>());
}

// "PoolList" -> "pool".
std::string Singular(const std::string& kind) {
  std::string name = absl::AsciiStrToLower(kind);
  if (absl::EndsWith(name, "list")) name.resize(name.size() - 4);
  return name;
}

bool Less(const nlohmann::json& a, const nlohmann::json& b) {
  if (!a.is_string() || !b.is_string()) return a < b;
  const auto x = a.get<std::string>();
  const auto y = b.get<std::string>();
  const auto x_bytes = ParseBytes(x);
  const auto y_bytes = ParseBytes(y);
  if (x_bytes.ok() && y_bytes.ok()) return *x_bytes < *y_bytes;
  absl::Duration x_time, y_time;
  if (absl::ParseDuration(x, &x_time) && absl::ParseDuration(y, &y_time)) {
    return x_time < y_time;
  }
  return x < y;
}

bool IsDescending(const std::string& sort_by) {
  return absl::StartsWith(sort_by, "-");
}

}  // namespace

std::string ShownSession(const std::string& session_id) {
  if (session_id.empty()) return "-";
  return absl::BytesToHexString(session_id.substr(0, kSessionHandleBytes));
}

void PrintDocument(const nlohmann::ordered_json& document,
                   const std::string& format, std::ostream& out) {
  if (format == "yaml") {
    out << ToYaml(document);
  } else {
    out << document.dump(2) << "\n";
  }
}

size_t Output::FindColumn(const std::string& name) const {
  const auto found = std::find_if(
      columns_.begin(), columns_.end(), [&name](const Column& column) {
        return absl::EqualsIgnoreCase(column.title, name) ||
               absl::EqualsIgnoreCase(column.key, name);
      });
  return static_cast<size_t>(found - columns_.begin());
}

absl::Status Output::CheckSortBy(const std::string& sort_by) const {
  if (sort_by.empty()) return absl::OkStatus();
  const std::string name = sort_by.substr(IsDescending(sort_by) ? 1 : 0);
  if (FindColumn(name) < columns_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--sort-by: ", ShownText(name), " is no column here; there are ",
      absl::StrJoin(columns_, ", ", [](std::string* out, const Column& column) {
        absl::StrAppend(out, column.key);
      })));
}

std::vector<Output::Row> Output::Sorted(const std::string& sort_by) const {
  std::vector<Row> rows = rows_;
  if (sort_by.empty()) return rows;
  const bool descending = IsDescending(sort_by);
  const size_t column = FindColumn(sort_by.substr(descending ? 1 : 0));
  if (column == columns_.size()) return rows;
  std::stable_sort(rows.begin(), rows.end(),
                   [column, descending](const Row& a, const Row& b) {
                     return descending ? Less(b[column], a[column])
                                       : Less(a[column], b[column]);
                   });
  return rows;
}

void Output::Print(const OutputOptions& options, std::ostream& out) const {
  const std::vector<Row> rows = Sorted(options.sort_by);
  if (options.IsDocument()) {
    PrintDocument(Document(rows), options.format, out);
  } else if (options.format == "name") {
    PrintNames(rows, out);
  } else {
    PrintTable(rows, options, out);
  }
}

void Output::PrintTable(const std::vector<Row>& rows,
                        const OutputOptions& options, std::ostream& out) const {
  std::vector<size_t> shown;
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].wide && options.format != "wide") continue;
    shown.push_back(c);
    size_t width = options.no_headers ? 0 : columns_[c].title.size();
    for (const auto& row : rows) width = std::max(width, Cell(row, c).size());
    widths.push_back(width);
  }
  const auto print_line = [&](const auto& cell) {
    std::string line;
    for (size_t i = 0; i < shown.size(); ++i) {
      const std::string text = cell(shown[i]);
      absl::StrAppend(&line, text,
                      std::string(widths[i] - text.size() + 2, ' '));
    }
    absl::StripTrailingAsciiWhitespace(&line);
    out << line << "\n";
  };
  if (!options.no_headers) {
    print_line([this](size_t c) { return columns_[c].title; });
  }
  for (const auto& row : rows) {
    print_line([this, &row](size_t c) { return Cell(row, c); });
  }
}

void Output::PrintNames(const std::vector<Row>& rows, std::ostream& out) const {
  for (const auto& row : rows) {
    out << Singular(kind_);
    for (size_t c = 0; c < name_columns_; ++c) out << "/" << Text(row[c]);
    out << "\n";
  }
}

std::string Output::Cell(const Row& row, size_t column) const {
  const auto show = columns_[column].show;
  return show == nullptr ? Text(row[column]) : Printable(show(row[column]));
}

nlohmann::ordered_json Output::ItemsOf(const std::vector<Row>& rows) const {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json item;
    for (size_t c = 0; c < columns_.size(); ++c) {
      item[columns_[c].key] = row[c];
    }
    items.push_back(std::move(item));
  }
  return items;
}

nlohmann::ordered_json Output::Document(const std::vector<Row>& rows) const {
  nlohmann::ordered_json document;
  document["apiVersion"] = "farkv/v1";
  document["kind"] = kind_;
  document["items"] = ItemsOf(rows);
  return document;
}

}  // namespace farkv

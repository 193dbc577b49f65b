#include "admin_cli/output.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "common/base/session_handle.h"

namespace farkv {
namespace {

// Names come from other processes: nothing in them may drive the terminal.
std::string Text(const nlohmann::json& value) {
  if (!value.is_string()) return value.dump();
  auto text = value.get<std::string>();
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); },
      '?');
  return text;
}

}  // namespace

std::string ShownSession(const std::string& session_id) {
  if (session_id.empty()) return "-";
  return absl::BytesToHexString(session_id.substr(0, kSessionHandleBytes));
}

void Output::Print(const std::string& format, std::ostream& out) const {
  format == "json" ? PrintJson(out) : PrintTable(out);
}

void Output::PrintTable(std::ostream& out) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = columns_[c].title.size();
    for (const auto& row : rows_) {
      width = std::max(width, Text(row[c]).size());
    }
    widths.push_back(width);
  }
  const auto print_line = [&](const auto& cell) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string text = cell(c);
      out << text;
      if (c + 1 == columns_.size()) break;
      out << std::string(widths[c] - text.size() + 2, ' ');
    }
    out << "\n";
  };
  print_line([this](size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) {
    print_line([&row](size_t c) { return Text(row[c]); });
  }
}

void Output::PrintJson(std::ostream& out) const {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const auto& row : rows_) {
    nlohmann::ordered_json item;
    for (size_t c = 0; c < columns_.size(); ++c) {
      item[columns_[c].key] = row[c];
    }
    items.push_back(std::move(item));
  }
  nlohmann::ordered_json document;
  document["apiVersion"] = "farkv/v1";
  document["kind"] = kind_;
  document["items"] = std::move(items);
  out << document.dump(2) << "\n";
}

}  // namespace farkv

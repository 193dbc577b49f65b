#include "common/process/config_text.h"

#include <map>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace farkv {
namespace {

bool IsEmptyOrComment(const std::string& line) {
  return line.empty() || line[0] == '#' || line[0] == ';';
}

std::string WithoutComment(const std::string& text) {
  return std::string(
      absl::StripAsciiWhitespace(text.substr(0, text.find('#'))));
}

// As CLI11 has it: "key" is the key too.
std::string KeyOf(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  for (const char* quote : {"\"", "'"}) {
    if (text.size() < 2 || !absl::StartsWith(text, quote)) continue;
    absl::string_view inner = text.substr(1);
    if (absl::ConsumeSuffix(&inner, quote)) return std::string(inner);
  }
  return std::string(text);
}

}  // namespace

absl::Status CheckConfigText(const std::string& text) {
  std::istringstream lines(text);
  std::map<std::string, int> seen;  // line of each key
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    absl::StripAsciiWhitespace(&line);
    if (IsEmptyOrComment(line)) continue;
    const size_t equals = line.find('=');
    const std::string key = KeyOf(line.substr(0, equals));
    if (equals == std::string::npos || key.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ": '", absl::CHexEscape(WithoutComment(line)),
          "' is not of the form key = value"));
    }
    const auto [first, added] = seen.emplace(key, number);
    if (!added) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": key '", absl::CHexEscape(key),
                       "' comes twice, first in line ", first->second));
    }
    // A list may go on in the lines below.
    std::string value = WithoutComment(line.substr(equals + 1));
    const bool list = value.size() > 1 && value[0] == '[';
    while (list && value.back() != ']' && std::getline(lines, line)) {
      ++number;
      absl::StripAsciiWhitespace(&line);
      absl::StrAppend(&value, line);
    }
  }
  return absl::OkStatus();
}

}  // namespace farkv

#include "admin_cli/yaml.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace farkv {
namespace {

using Json = nlohmann::ordered_json;

// Letters first, so that it is no number, date or sign of YAML.
bool IsPlain(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text[0])))
    return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
               c == '-' || c == '_' || c == '/';
      })) {
    return false;
  }
  const auto is_word = [&text](const char* word) {
    return absl::EqualsIgnoreCase(text, word);
  };
  const char* const kWords[] = {"y",   "n",    "yes",   "no",  "on",
                                "off", "true", "false", "null"};
  return std::none_of(std::begin(kWords), std::end(kWords), is_word);
}

std::string Scalar(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (IsPlain(text)) return text;
  }
  // JSON's escapes are YAML's, too.
  return value.dump(-1, ' ', /*ensure_ascii=*/true,
                    Json::error_handler_t::replace);
}

bool IsBlock(const Json& value) {
  return value.is_structured() && !value.empty();
}

void Append(const Json& value, size_t indent, std::string& out);

// What stands behind "key:" or "-".
void AppendValue(const Json& value, size_t indent, std::string& out) {
  if (IsBlock(value)) {
    out += "\n";
    Append(value, indent, out);
  } else {
    out += " " + Scalar(value) + "\n";
  }
}

void Append(const Json& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      out += margin + Scalar(Json(key)) + ":";
      // A list stands below its key without an indent.
      AppendValue(child, child.is_array() ? indent : indent + 2, out);
    }
    return;
  }
  for (const Json& child : value) {
    if (!child.is_object() || child.empty()) {
      out += margin + "-";
      AppendValue(child, indent + 2, out);
      continue;
    }
    // The first key stands beside the dash.
    std::string item;
    Append(child, indent + 2, item);
    item.replace(indent, 1, "-");
    out += item;
  }
}

}  // namespace

std::string ToYaml(const Json& document) {
  if (!IsBlock(document)) return Scalar(document) + "\n";
  std::string out;
  Append(document, 0, out);
  return out;
}

}  // namespace farkv

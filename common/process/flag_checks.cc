#include "common/process/flag_checks.h"

#include <net/if.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/process/address.h"

namespace farkv {
namespace {

absl::Status Bad(const std::string& text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(ShownText(text), " ", why));
}

bool IsLetterOrDigit(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c));
}

std::optional<uint16_t> ParsePort(absl::string_view text) {
  uint32_t number = 0;
  if (text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &number) || number < 1 || number > 65535) {
    return std::nullopt;
  }
  return static_cast<uint16_t>(number);
}

bool IsRdmaDevice(const std::string& name) {
  const std::string device = name.substr(0, name.find(':'));
  std::error_code error;
  return device.find('/') == std::string::npos && !device.empty() &&
         std::filesystem::exists("/sys/class/infiniband/" + device, error);
}

std::string InterfacesHere() {
  std::string names;
  if (struct if_nameindex* all = if_nameindex(); all != nullptr) {
    for (auto* i = all; i->if_index != 0; ++i) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", i->if_name);
    }
    if_freenameindex(all);
  }
  return names;
}

}  // namespace

absl::Status CheckName(const std::string& text) {
  if (text.empty()) return Bad(text, "is empty; a name is needed");
  if (text.size() > kMaxNameBytes) {
    return Bad(text, absl::StrCat("has ", text.size(), " characters, at most ",
                                  kMaxNameBytes, " are allowed"));
  }
  if (!IsLetterOrDigit(text.front())) {
    return Bad(text, "must begin with a letter or a digit");
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsLetterOrDigit(text[i]) || text[i] == '.' || text[i] == '_' ||
        text[i] == '-') {
      continue;
    }
    return Bad(text, absl::StrCat("has '", absl::CHexEscape(text.substr(i, 1)),
                                  "'; allowed are letters, digits, '.', '_' "
                                  "and '-'"));
  }
  return absl::OkStatus();
}

absl::Status CheckHost(const std::string& text) {
  if (text.empty()) return Bad(text, "is empty; a host is needed");
  const bool several_colons = text.find(':') != text.rfind(':');
  for (char c : text) {
    if (IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_') continue;
    if (several_colons && (c == ':' || c == '%')) continue;  // IPv6
    return Bad(text, c == ':' ? "has a port; give the host alone"
                              : "has a character that no host has");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ParseList(const std::string& text) {
  std::vector<std::string> list;
  if (text.empty()) return list;
  for (absl::string_view piece : absl::StrSplit(text, ',')) {
    std::string element(absl::StripAsciiWhitespace(piece));
    if (element.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' has an empty element between its commas"));
    }
    if (std::find(list.begin(), list.end(), element) != list.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' names '", element, "' twice"));
    }
    list.push_back(std::move(element));
  }
  return list;
}

absl::Status CheckInterfaces(const std::string& text) {
  FARKV_ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseList(text));
  for (const std::string& name : names) {
    if (name == "all" || IsRdmaDevice(name)) continue;
    if (if_nametoindex(name.c_str()) != 0) continue;
    return Bad(name,
               absl::StrCat("is no network interface of this machine; it has ",
                            InterfacesHere()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ParsePeers(const std::string& text) {
  FARKV_ASSIGN_OR_RETURN(std::vector<std::string> list, ParseList(text));
  for (const std::string& address : list) {
    FARKV_RETURN_IF_ERROR(ParsePeerAddress(address).status());
  }
  return list;
}

absl::StatusOr<PortRange> ParsePortRange(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  if (ends.size() != 2) return Bad(text, "is not FIRST-LAST, as in 9000-9100");
  const auto first = ParsePort(ends[0]), last = ParsePort(ends[1]);
  if (!first || !last) {
    return Bad(text,
               "is not FIRST-LAST, as in 9000-9100, with ports from 1 to "
               "65535");
  }
  if (*first > *last) return Bad(text, "ends before it begins");
  return PortRange{*first, *last};
}

}  // namespace farkv

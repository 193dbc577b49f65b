// The kinds of flags: how each reads its text and what it refuses. A message
// repeats the value as the user wrote it.
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/process/address.h"
#include "common/process/flag_checks.h"
#include "common/process/flags.h"

namespace farkv {
namespace {

std::string FormatRatio(int32_t per_ten_thousand) {
  std::string digits =
      absl::StrCat(per_ten_thousand / 10000, ".",
                   absl::Dec(per_ten_thousand % 10000, absl::kZeroPad4));
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

absl::StatusOr<int64_t> ParseInteger(const std::string& text, int64_t minimum,
                                     int64_t maximum) {
  const size_t first_digit = text.starts_with('-') ? 1 : 0;
  if (text.size() == first_digit ||
      text.find_first_not_of("0123456789", first_digit) != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a whole number"));
  }
  int64_t number = 0;
  // Fails for what needs more than 64 bits.
  if (!absl::SimpleAtoi(text, &number) || number < minimum ||
      number > maximum) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is outside ", minimum, " to ", maximum));
  }
  return number;
}

}  // namespace

void Flags::AddText(const std::string& name, std::string* value,
                    const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        *value = text;
        return absl::OkStatus();
      },
      [value] { return *value; }, help);
}

void Flags::AddName(const std::string& name, std::string* value,
                    const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_RETURN_IF_ERROR(CheckName(text));
        *value = text;
        return absl::OkStatus();
      },
      [value] { return *value; }, help);
}

void Flags::AddTexts(const std::string& name, std::vector<std::string>* value,
                     const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(*value, ParseList(text));
        return absl::OkStatus();
      },
      [value] { return absl::StrJoin(*value, ","); }, help);
}

void Flags::AddPeers(const std::string& name, std::vector<std::string>* value,
                     const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(*value, ParsePeers(text));
        return absl::OkStatus();
      },
      [value] { return absl::StrJoin(*value, ","); }, help);
}

void Flags::AddChoice(const std::string& name, std::string* value,
                      const std::vector<std::string>& choices,
                      const std::string& help) {
  const std::string list = absl::StrJoin(choices, "|");
  Add(
      name,
      [value, choices, list](const std::string& text) {
        for (const std::string& choice : choices) {
          if (text != choice) continue;
          *value = text;
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError(
            absl::StrCat("'", text, "' is not one of ", list));
      },
      [value] { return *value; }, absl::StrCat(help, ": ", list));
}

void Flags::AddInteger(const std::string& name, int64_t* value, int64_t minimum,
                       int64_t maximum, const std::string& help) {
  Add(
      name,
      [=](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(*value, ParseInteger(text, minimum, maximum));
        return absl::OkStatus();
      },
      [value] { return absl::StrCat(*value); }, help);
}

void Flags::AddBytes(const std::string& name, uint64_t* value,
                     const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(*value, ParseBytes(text));
        return absl::OkStatus();
      },
      [value] { return FormatBytes(*value); }, help);
}

void Flags::AddDuration(const std::string& name, absl::Duration* value,
                        const DurationBounds& bounds, const std::string& help) {
  Add(
      name,
      [value, bounds](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(const absl::Duration given, ParseDuration(text));
        if (given < bounds.shortest || given > bounds.longest) {
          return absl::InvalidArgumentError(absl::StrCat(
              text, " is outside ", absl::FormatDuration(bounds.shortest),
              " to ", absl::FormatDuration(bounds.longest), ": ", bounds.why));
        }
        *value = given;
        return absl::OkStatus();
      },
      [value] { return absl::FormatDuration(*value); }, help);
}

void Flags::AddRatio(const std::string& name, int32_t* value,
                     const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(*value, ParseRatio(text));
        return absl::OkStatus();
      },
      [value] { return FormatRatio(*value); }, help);
}

void Flags::AddPositiveRatio(const std::string& name, int32_t* value,
                             const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_ASSIGN_OR_RETURN(const int32_t given, ParseRatio(text));
        if (given == 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("ratio \"", text, "\" must lie in [0.0001, 1]"));
        }
        *value = given;
        return absl::OkStatus();
      },
      [value] { return FormatRatio(*value); }, help);
}

void Flags::AddAddress(const std::string& name, std::string* value,
                       const std::string& help) {
  Add(
      name,
      [value](const std::string& text) {
        FARKV_RETURN_IF_ERROR(ParseAddress(text).status());
        *value = text;
        return absl::OkStatus();
      },
      [value] { return *value; }, help);
}

}  // namespace farkv

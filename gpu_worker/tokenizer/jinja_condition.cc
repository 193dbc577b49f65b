#include "gpu_worker/tokenizer/jinja_condition.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace farkv {
namespace {

bool IsKeyword(absl::string_view word) {
  return word == "not" || word == "and" || word == "or" || word == "in" ||
         word == "is" || word == "if" || word == "else";
}

bool InOperand(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '.' || c == '\'' || c == '"';
}

// The end of an operand that begins at `at`: a name, number or literal with
// the subscripts and calls that follow.
size_t OperandEnd(absl::string_view text, size_t at) {
  const size_t begin = at;
  size_t depth = 0;
  char quote = '\0';
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[') {
      if (depth == 0 && IsKeyword(text.substr(begin, at - begin))) break;
      ++depth;
    } else if (c == ')' || c == ']') {
      if (depth == 0) break;
      --depth;
    } else if (depth == 0 && !InOperand(c)) {
      break;
    }
  }
  return at;
}

std::vector<std::string> Words(absl::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (InOperand(text[at])) {
      end = OperandEnd(text, at);
    } else if (end < text.size() && text[end] == '=') {
      ++end;  // ==, !=
    }
    const std::string word = absl::AsciiStrToLower(
        absl::StripAsciiWhitespace(text.substr(at, end - at)));
    if (!word.empty()) words.push_back(word);
    at = end;
  }
  return words;
}

bool NamesTools(absl::string_view word) {
  return absl::StrContains(word, "tool") ||
         absl::StrContains(word, "function") ||
         absl::StrContains(word, "ipython");
}

class Condition {
 public:
  explicit Condition(absl::string_view text) : words_(Words(text)) {}

  Tools tools() const {
    bool named = false, more = false;
    std::vector<bool> negated;  // of open brackets
    size_t flips = 0;           // how many of them are
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::string& word = words_[i];
      if (word == "(") {
        negated.push_back(Word(i - 1) == "not");
        flips += static_cast<size_t>(negated.back());
      } else if (word == ")" && !negated.empty()) {
        flips -= static_cast<size_t>(negated.back());
        negated.pop_back();
      }
      more |= word == "and" || word == "or";
      if (!NamesTools(word)) continue;
      named = true;
      if (IsTrueWithTools(i) == (flips % 2 == 0)) return Tools::kNeeded;
    }
    if (!named) return Tools::kNotNamed;
    return more ? Tools::kAbsent : Tools::kOnlyAbsent;
  }

 private:
  std::string Word(size_t i) const {
    return i < words_.size() ? words_[i] : "";
  }

  // Of the comparison around word i, brackets aside.
  bool IsTrueWithTools(size_t i) const {
    bool with = true;
    const bool is_not = Word(i + 1) == "is" && Word(i + 2) == "not";
    const std::string than = Word(i + 1) == "is"   ? Word(i + (is_not ? 3 : 2))
                             : Word(i + 1) == "==" ? Word(i + 2)
                                                   : "";
    if (than == "none" || than == "undefined" || than == "false") with = false;
    if (is_not) with = !with;
    if (Word(i + 1) == "not" && Word(i + 2) == "in") with = false;
    if (Word(i - 1) == "!=") with = false;
    if (Word(i - 1) == "not") with = !with;
    return with;
  }

  std::vector<std::string> words_;
};

}  // namespace

Tools ToolsIn(absl::string_view condition) {
  return Condition(condition).tools();
}

}  // namespace farkv

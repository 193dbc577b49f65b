#include "gpu_worker/tokenizer/jinja_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/jinja_condition.h"

namespace farkv {
namespace {

bool IsQuote(char c) { return c == '\'' || c == '"'; }
bool IsWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// The end of the literal that begins at `at`, its quote included; npos if none.
size_t LiteralEnd(absl::string_view text, size_t at) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      return at + 1;
    }
  }
  return absl::string_view::npos;
}

// Escapes that are not known stay as they are, and fit no form.
std::string Unescaped(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    const char* known = "n\nt\tr\r\\\\''\"\"";
    while (*known != '\0' && *known != next) known += 2;
    if (text[at] != '\\' || *known == '\0') {
      out.push_back(text[at]);
    } else {
      out.push_back(known[1]);
      ++at;
    }
  }
  return out;
}

// Reads one expression, of an output or on the right of an assignment.
class Expression {
 public:
  // `joined`: whether a literal that comes first goes on with the last one.
  Expression(absl::string_view text, bool joined, JinjaText& into)
      : text_(text),
        into_(into),
        before_(joined ? Before::kPlus : Before::kNothing) {}

  // Whether it ends with a literal.
  bool Read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (IsQuote(c)) {
        ReadLiteral();
      } else if (IsWord(c)) {
        ReadWord();
      } else {
        if (!absl::ascii_isspace(static_cast<unsigned char>(c))) ReadSign(c);
        ++at_;
      }
    }
    return before_ == Before::kWritten;
  }

 private:
  enum class Before { kNothing, kWritten, kPlus, kCompared, kOther };

  void ReadLiteral() {
    const size_t end = std::min(LiteralEnd(text_, at_), text_.size());
    const absl::string_view inner =
        text_.substr(at_ + 1, end - std::min(end, at_ + 2));
    at_ = end;
    absl::string_view behind =
        absl::StripLeadingAsciiWhitespace(text_.substr(end));
    const bool compared =
        before_ == Before::kCompared || absl::StartsWith(behind, "==") ||
        absl::StartsWith(behind, "!=") || absl::StartsWith(behind, "in ") ||
        absl::StartsWith(behind, "not in ");
    if (InCall() || compared) {
      before_ = Before::kOther;
      return;
    }
    const std::string literal = Unescaped(inner);
    const bool joined = before_ == Before::kWritten || before_ == Before::kPlus;
    before_ = Before::kWritten;
    if (joined && !into_.literals.empty()) {
      into_.literals.back() += literal;
    } else {
      into_.literals.push_back(literal);
    }
  }

  void ReadWord() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    word_ = text_.substr(begin, at_ - begin);
    if (!InCall()) {
      into_.bos |= word_ == "bos_token";
      into_.eos |= word_ == "eos_token";
    }
    before_ = word_ == "in" ? Before::kCompared : Before::kOther;
  }

  void ReadSign(char c) {
    if (c == '(' || c == '[') {
      // Behind a name or a value it is a call or a subscript.
      const char front = at_ == 0 ? ' ' : text_[at_ - 1];
      const bool keyword = word_ == "if" || word_ == "else" || word_ == "in" ||
                           word_ == "not" || word_ == "and" || word_ == "or";
      calls_.push_back(front == ')' || front == ']' ||
                       (IsWord(front) && !keyword));
      open_calls_ += static_cast<size_t>(calls_.back());
      before_ = Before::kNothing;
    } else if (c == ')' || c == ']') {
      if (!calls_.empty()) {
        open_calls_ -= static_cast<size_t>(calls_.back());
        calls_.pop_back();
      }
      before_ = Before::kOther;
    } else if ((c == '+' || c == '~') && before_ == Before::kWritten) {
      before_ = Before::kPlus;
    } else {
      before_ = c == '=' ? Before::kCompared : Before::kOther;
    }
  }

  bool InCall() const { return open_calls_ > 0; }

  absl::string_view text_;
  JinjaText& into_;
  size_t at_ = 0;
  absl::string_view word_;   // the last one
  std::vector<bool> calls_;  // of open brackets: whether a call or subscript
  size_t open_calls_ = 0;
  Before before_;
};

class Reader {
 public:
  explicit Reader(absl::string_view jinja) : jinja_(jinja) {}

  absl::StatusOr<JinjaText> Read() {
    size_t at = 0;
    while (at < jinja_.size()) {
      const size_t tag = NextTag(at);
      ReadData(jinja_.substr(at, tag - at), jinja_.substr(tag, 3));
      if (tag == jinja_.size()) break;
      FARKV_ASSIGN_OR_RETURN(at, ReadTag(tag));
    }
    auto& all = text_.literals;
    all.erase(std::remove(all.begin(), all.end(), ""), all.end());
    return std::move(text_);
  }

 private:
  struct Block {
    bool outer_skipped = false;
    bool skipped = false;  // so that no outer block need be asked
    bool else_skipped = false;
  };

  size_t NextTag(size_t at) const {
    for (; at + 1 < jinja_.size(); ++at) {
      const char second = jinja_[at + 1];
      if (jinja_[at] == '{' &&
          (second == '{' || second == '%' || second == '#')) {
        return at;
      }
    }
    return jinja_.size();
  }

  // The place behind the tag that begins at `at`.
  absl::StatusOr<size_t> ReadTag(size_t at) {
    const char kind = jinja_[at + 1];
    const char last = kind == '{' ? '}' : kind;
    size_t end = at + 2;
    for (; end + 1 < jinja_.size(); ++end) {
      if (jinja_[end] == last && jinja_[end + 1] == '}') break;
      if (kind == '#' || !IsQuote(jinja_[end])) continue;
      end = std::min(LiteralEnd(jinja_, end), jinja_.size()) - 1;
    }
    if (end + 1 >= jinja_.size()) {
      return absl::UnimplementedError(
          absl::StrCat("the model's chat template has a tag at byte ", at,
                       " that does not end: \"",
                       absl::CHexEscape(jinja_.substr(at, 40)), "\""));
    }
    absl::string_view body = jinja_.substr(at + 2, end - at - 2);
    if (!body.empty() && (body[0] == '-' || body[0] == '+')) {
      body.remove_prefix(1);
    }
    strip_ = !body.empty() && body.back() == '-';
    if (strip_) body.remove_suffix(1);
    trim_ = kind != '{';
    body = absl::StripAsciiWhitespace(body);
    if (kind == '{' && !Skipped()) {
      joined_ = Expression(body, joined_, text_).Read();
    }
    if (kind == '%') ReadStatement(body);
    return end + 2;
  }

  // Text in front of a tag that begins with `tag`.
  void ReadData(absl::string_view data, absl::string_view tag) {
    if (tag.empty()) absl::ConsumeSuffix(&data, "\n");
    if (strip_) data = absl::StripLeadingAsciiWhitespace(data);
    if (trim_) absl::ConsumePrefix(&data, "\n");
    if (absl::EndsWith(tag, "-")) {
      data = absl::StripTrailingAsciiWhitespace(data);
    } else if (absl::StartsWith(tag, "{%") || absl::StartsWith(tag, "{#")) {
      const size_t line = data.find_last_not_of(" \t");
      // Spaces behind another tag of the line stay.
      if (line == absl::string_view::npos ? trim_ : data[line] == '\n') {
        data = data.substr(0, line + 1);
      }
    }
    if (data.empty() || Skipped()) return;
    if (joined_) {
      absl::StrAppend(&text_.literals.back(), data);
    } else {
      text_.literals.emplace_back(data);
    }
    joined_ = true;
  }

  void ReadStatement(absl::string_view body) {
    joined_ = false;
    size_t end = 0;
    while (end < body.size() && IsWord(body[end])) ++end;
    const absl::string_view name = body.substr(0, end);
    const absl::string_view rest = body.substr(end);
    if (name == "if") {
      Open(false);
      Enter(rest);
    } else if (name == "elif" && !blocks_.empty()) {
      Enter(rest);
    } else if (name == "else" && !blocks_.empty()) {
      Skip(blocks_.back().else_skipped);
    } else if (name == "for" || name == "macro") {
      Open(ToolsIn(rest) == Tools::kNeeded);
    } else if (name == "set") {
      const size_t equals = rest.find('=');
      if (equals == absl::string_view::npos) {
        Open(false);
      } else if (!Skipped()) {
        Expression(rest.substr(equals + 1), false, text_).Read();
      }
    } else if (name == "filter" || name == "call") {
      Open(false);
    } else if ((name == "endif" || name == "endfor" || name == "endmacro" ||
                name == "endset" || name == "endfilter" || name == "endcall") &&
               !blocks_.empty()) {
      blocks_.pop_back();
    }
  }

  void Open(bool skipped) {
    blocks_.push_back({.outer_skipped = Skipped()});
    Skip(skipped);
  }

  void Skip(bool skipped) {
    blocks_.back().skipped = skipped || blocks_.back().outer_skipped;
  }

  void Enter(absl::string_view condition) {
    const Tools tools = ToolsIn(condition);
    Block& block = blocks_.back();
    Skip(block.else_skipped || tools == Tools::kNeeded);
    block.else_skipped |= tools == Tools::kOnlyAbsent;
  }

  bool Skipped() const { return !blocks_.empty() && blocks_.back().skipped; }

  absl::string_view jinja_;
  JinjaText text_;
  std::vector<Block> blocks_;
  bool strip_ = false;   // the tag before takes the white space behind it
  bool trim_ = true;     // it takes a line end; so does the file's begin
  bool joined_ = false;  // what comes is written right behind the last literal
};

}  // namespace

absl::StatusOr<JinjaText> ReadJinjaText(absl::string_view jinja) {
  return Reader(jinja).Read();
}

}  // namespace farkv

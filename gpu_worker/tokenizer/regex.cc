#include "gpu_worker/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/newer_characters.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

constexpr size_t kMaxPatternBytes = 16 << 10;
// Steps back and memory (KiB) for one match. A pattern of a real tokenizer
// takes at most a few steps for each character of the longest run of spaces.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapKib = 64 << 10;
constexpr size_t kJitStackMin = 32 << 10;
constexpr size_t kJitStackMax = 4 << 20;

std::string Reason(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR Units(absl::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// The category of "{L}...", what follows \p, when it is one letter; else 0.
char CategoryAt(absl::string_view rest) {
  return rest.size() >= 3 && rest[0] == '{' && rest[2] == '}' ? rest[1] : '\0';
}

// What an escape whose letter is at `i` stands for, as the inside of a class;
// moves `i` to its last character. Empty: PCRE2 takes it as it is.
std::string ClassOf(absl::string_view pattern, bool newer, size_t& i) {
  // PCRE2's \s also takes U+180E, which is no white space since Unicode 6.3.
  constexpr char kSpaces[] = R"(\t-\r\x{85}\p{Z})";
  if (pattern[i] == 's' || pattern[i] == 'S') return kSpaces;
  if (pattern[i] != 'p' || !newer) return "";
  const char category = CategoryAt(pattern.substr(i + 1));
  const absl::string_view added = NewerCharacters(category);
  if (added.empty()) return "";
  i += 3;
  return absl::StrCat("\\p{", std::string(1, category), "}", added);
}

// `pattern` with its white space as Oniguruma's and, when `newer`, the
// categories of Unicode 16. \S within a class stays PCRE2's.
std::string SpellOut(absl::string_view pattern, bool newer) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      if (c == '[' && !in_class) {
        in_class = true;
      } else if (c == ']') {
        in_class = false;
      }
      out += c;
      continue;
    }
    const char escaped = pattern[++i];
    const std::string inside = ClassOf(pattern, newer, i);
    if (inside.empty() || (escaped == 'S' && in_class)) {
      out += c;
      out += escaped;
    } else if (in_class) {
      out += inside;
    } else {
      absl::StrAppend(&out, escaped == 'S' ? "[^" : "[", inside, "]");
    }
  }
  return out;
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;

  explicit Code(pcre2_code* compiled) : code(compiled) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

absl::StatusOr<std::shared_ptr<const Regex::Code>> Regex::CompileSpelled(
    const std::string& spelled) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code =
      pcre2_compile(Units(spelled), spelled.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                        PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE,
                    &error, &at, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pattern \"", absl::CHexEscape(spelled),
                     "\" is wrong at byte ", at, ": ", Reason(error)));
  }
  return std::make_shared<const Code>(code);
}

absl::StatusOr<Regex> Regex::Compile(absl::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pattern of ", pattern.size(), " bytes, at most ",
                     kMaxPatternBytes, " are taken"));
  }
  // First without the newer characters: a message shows no tables.
  FARKV_ASSIGN_OR_RETURN(std::shared_ptr<const Code> code,
                         CompileSpelled(SpellOut(pattern, false)));
  // A pattern that is all categories can be too large with them.
  auto newer = CompileSpelled(SpellOut(pattern, true));
  if (newer.ok()) code = *std::move(newer);
  // Without JIT on this machine the interpreter matches the same.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  return Regex(std::move(code));
}

struct RegexSearch::State {
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack = nullptr;  // made when the machine's is too small

  explicit State(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)),
        context(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapKib);
  }
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // PCRE2's count or error.
  int Match(const pcre2_code* code, absl::string_view subject, size_t at) {
    int count = MatchOnce(code, subject, at, 0);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT && stack == nullptr) {
      stack = pcre2_jit_stack_create(kJitStackMin, kJitStackMax, nullptr);
      pcre2_jit_stack_assign(context, nullptr, stack);
      count = MatchOnce(code, subject, at, 0);
    }
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
      count = MatchOnce(code, subject, at, PCRE2_NO_JIT);
    }
    return count;
  }

  int MatchOnce(const pcre2_code* code, absl::string_view subject, size_t at,
                uint32_t options) {
    // Checking UTF-8 here would read the rest of the text at each match.
    return pcre2_match(code, Units(subject), subject.size(), at,
                       PCRE2_NO_UTF_CHECK | options, data, context);
  }
};

RegexSearch::RegexSearch(const Regex& regex)
    : regex_(regex), state_(std::make_unique<State>(regex.code_->code)) {}

RegexSearch::~RegexSearch() = default;

absl::Status RegexSearch::FindAll(absl::string_view text, TextSpan within,
                                  std::vector<TextSpan>& matches) {
  const absl::string_view subject =
      text.substr(within.begin, within.end - within.begin);
  for (size_t at = 0; at < subject.size();) {
    const int count = state_->Match(regex_.code_->code, subject, at);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cutting the text by a pattern of the tokenizer failed "
                       "at byte ",
                       within.begin + at, ": ", Reason(count)));
    }
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(state_->data);
    const TextSpan match{within.begin + found[0], within.begin + found[1]};
    at = found[1];
    if (match.end > match.begin) {
      matches.push_back(match);
    } else if (at < subject.size()) {
      at += ReadUtf8(subject.substr(at)).bytes;
    }
  }
  return absl::OkStatus();
}

std::string Regex::Quote(absl::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (absl::ascii_ispunct(static_cast<unsigned char>(c))) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace farkv

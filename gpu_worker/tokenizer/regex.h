// A PCRE2 pattern on UTF-8 text with Unicode's character properties. Made for
// the patterns of tokenizer files, which are written for Oniguruma: \s and \S
// mean White_Space, \p{L} and the other general categories are those of Unicode
// 16, ^ and $ match at lines. Immutable, thread-safe.
#ifndef FARKV_GPU_WORKER_TOKENIZER_REGEX_H_
#define FARKV_GPU_WORKER_TOKENIZER_REGEX_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const TextSpan&) const = default;
};

class Regex {
 public:
  // INVALID_ARGUMENT naming the pattern, the place and PCRE2's reason.
  static absl::StatusOr<Regex> Compile(absl::string_view pattern);

  // A pattern that matches exactly `literal`.
  static std::string Quote(absl::string_view literal);

 private:
  friend class RegexSearch;
  struct Code;  // PCRE2's compiled form
  static absl::StatusOr<std::shared_ptr<const Code>> CompileSpelled(
      const std::string& spelled);
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  std::shared_ptr<const Code> code_;
};

// Searches of one thread with one pattern, which must live as long.
class RegexSearch {
 public:
  explicit RegexSearch(const Regex& regex);
  ~RegexSearch();
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;

  // Appends the matches within `within`, which is all that the pattern sees of
  // `text`, from left to right; empty ones are left out. `text` must be valid
  // UTF-8, the span whole characters. RESOURCE_EXHAUSTED when matching takes
  // more steps or memory than any useful pattern does.
  absl::Status FindAll(absl::string_view text, TextSpan within,
                       std::vector<TextSpan>& matches);

 private:
  struct State;  // PCRE2's working memory

  const Regex& regex_;
  std::unique_ptr<State> state_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_REGEX_H_

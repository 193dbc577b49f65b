#include "gpu_worker/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

using NormalizerKind = NormalizerStep::Kind;

// Longest replacement: what bounds how much a text can grow.
constexpr size_t kMaxContentBytes = 64;
constexpr size_t kMaxNormalizerSteps = 16;
// How much longer than the text its rewritten form may be: Unicode's longest
// decomposition is 11 times its character.
constexpr size_t kMaxGrowth = 64;
constexpr size_t kSpareBytes = 4096;

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

absl::StatusOr<std::string> Compose(absl::string_view text,
                                    NormalizerKind kind) {
  if (std::all_of(text.begin(), text.end(), IsAscii)) return std::string(text);
  int options = UTF8PROC_STABLE;
  options |= kind == NormalizerKind::kNfc || kind == NormalizerKind::kNfkc
                 ? UTF8PROC_COMPOSE
                 : UTF8PROC_DECOMPOSE;
  if (kind == NormalizerKind::kNfkc || kind == NormalizerKind::kNfkd) {
    options |= UTF8PROC_COMPAT;
  }
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(options));
  if (length < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot normalise the text: ", utf8proc_errmsg(length)));
  }
  std::string out(reinterpret_cast<const char*>(mapped),
                  static_cast<size_t>(length));
  std::free(mapped);  // NOLINT: utf8proc allocates with malloc
  return out;
}

// No form joins an ASCII character with what stands before it. Moves `span` so
// that neither end is within what `kind` joins or reorders.
absl::Status WidenToCuts(absl::string_view text, NormalizerKind kind,
                         TextSpan& span) {
  for (size_t* const border : {&span.begin, &span.end}) {
    size_t before = *border, behind = *border;
    while (behind < text.size() && !IsAscii(text[behind])) ++behind;
    if (*border == behind) continue;
    while (before > 0 && !IsAscii(text[--before])) {
    }
    const auto part = [&text](size_t begin, size_t end) {
      return text.substr(begin, end - begin);
    };
    FARKV_ASSIGN_OR_RETURN(const std::string whole,
                           Compose(part(before, behind), kind));
    FARKV_ASSIGN_OR_RETURN(const std::string front,
                           Compose(part(before, *border), kind));
    FARKV_ASSIGN_OR_RETURN(const std::string back,
                           Compose(part(*border, behind), kind));
    if (absl::StrCat(front, back) == whole) continue;
    *border = border == &span.begin ? before : behind;
  }
  return absl::OkStatus();
}

// The ends of the spans in the order in which the text passes them.
std::vector<size_t*> BordersOf(std::vector<TextSpan>& spans) {
  std::vector<size_t*> borders;
  for (TextSpan& span : spans) {
    borders.push_back(&span.begin);
    borders.push_back(&span.end);
  }
  std::sort(borders.begin(), borders.end(),
            [](const size_t* a, const size_t* b) { return *a < *b; });
  return borders;
}

absl::StatusOr<std::string> ComposeParts(absl::string_view text,
                                         NormalizerKind kind,
                                         std::vector<TextSpan>& spans) {
  for (TextSpan& span : spans) {
    FARKV_RETURN_IF_ERROR(WidenToCuts(text, kind, span));
  }
  std::string out;
  size_t at = 0;
  for (size_t* const border : BordersOf(spans)) {
    FARKV_ASSIGN_OR_RETURN(const std::string part,
                           Compose(text.substr(at, *border - at), kind));
    out += part;
    at = *border;
    *border = out.size();
  }
  FARKV_ASSIGN_OR_RETURN(const std::string rest,
                         Compose(text.substr(at), kind));
  return out + rest;
}

std::string Replace(absl::string_view text, const NormalizerStep& step,
                    std::vector<TextSpan>& spans) {
  const std::vector<TextSpan> before = spans;
  std::string out;
  size_t at = 0, begins = 0, ends = 0;
  for (bool more = true; more;) {
    const size_t found = text.find(step.pattern, at);
    more = found != absl::string_view::npos;
    const size_t match = more ? found : text.size();
    const size_t next = more ? match + step.pattern.size() : match + 1;
    const size_t moved = out.size() - at;  // modulo 2^64
    absl::StrAppend(&out, text.substr(at, match - at));
    const size_t front = out.size();
    if (more) out += step.content;
    // A border within the match: the whole replacement is the span's.
    for (; begins < spans.size() && before[begins].begin < next; ++begins) {
      const size_t begin = before[begins].begin;
      spans[begins].begin = begin < match ? begin + moved : front;
    }
    for (; ends < spans.size() && before[ends].end < next; ++ends) {
      const size_t end = before[ends].end;
      spans[ends].end = end <= match ? end + moved : out.size();
    }
    at = next;
  }
  return out;
}

// What is put in front of a span at the front is the span's.
void Prepend(const std::string& content, std::string& text,
             std::vector<TextSpan>& spans) {
  text.insert(0, content);
  for (TextSpan& span : spans) {
    if (span.begin > 0) span.begin += content.size();
    span.end += content.size();
  }
}

}  // namespace

absl::StatusOr<Normalizer> Normalizer::Create(
    std::vector<NormalizerStep> steps) {
  if (steps.size() > kMaxNormalizerSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("the normaliser has ", steps.size(), " steps, at most ",
                     kMaxNormalizerSteps, " are taken"));
  }
  for (const NormalizerStep& step : steps) {
    if (step.kind == NormalizerKind::kReplace && step.pattern.empty()) {
      return absl::InvalidArgumentError("the normaliser replaces nothing");
    }
    if (step.content.size() > kMaxContentBytes ||
        FindInvalidUtf8(step.content) != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("the normaliser inserts ", step.content.size(),
                       " bytes, must be UTF-8 of at most ", kMaxContentBytes));
    }
  }
  Normalizer normalizer;
  normalizer.steps_ = std::move(steps);
  return normalizer;
}

absl::StatusOr<std::string> Normalizer::Apply(absl::string_view text) const {
  std::vector<TextSpan> none;
  return Apply(text, none);
}

absl::StatusOr<std::string> Normalizer::Apply(
    absl::string_view text, std::vector<TextSpan>& spans) const {
  std::string out(text);
  const size_t limit = kMaxGrowth * text.size() + kSpareBytes;
  for (const NormalizerStep& step : steps_) {
    if (out.empty()) break;
    if (out.size() > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the normaliser makes ", out.size(), " bytes of ",
                       text.size(), ", at most ", limit, " are taken"));
    }
    if (step.kind == NormalizerKind::kPrepend) {
      Prepend(step.content, out, spans);
    } else if (step.kind == NormalizerKind::kReplace) {
      out = Replace(out, step, spans);
    } else {
      FARKV_ASSIGN_OR_RETURN(out, ComposeParts(out, step.kind, spans));
    }
  }
  return out;
}

}  // namespace farkv

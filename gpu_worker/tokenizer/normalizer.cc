#include "gpu_worker/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

using Kind = NormalizerStep::Kind;

// Longest replacement: what bounds how much a text can grow.
constexpr size_t kMaxContentBytes = 64;
constexpr size_t kMaxSteps = 16;
// How much longer than the text its rewritten form may be: Unicode's longest
// decomposition is 11 times its character.
constexpr size_t kMaxGrowth = 64;
constexpr size_t kSpareBytes = 4096;

absl::StatusOr<std::string> Compose(const std::string& text, Kind kind) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
  if (ascii) return text;
  int options = UTF8PROC_STABLE;
  options |= kind == Kind::kNfc || kind == Kind::kNfkc ? UTF8PROC_COMPOSE
                                                       : UTF8PROC_DECOMPOSE;
  if (kind == Kind::kNfkc || kind == Kind::kNfkd) options |= UTF8PROC_COMPAT;
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

}  // namespace

absl::StatusOr<Normalizer> Normalizer::Create(
    std::vector<NormalizerStep> steps) {
  if (steps.size() > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("the normaliser has ", steps.size(), " steps, at most ",
                     kMaxSteps, " are taken"));
  }
  for (const NormalizerStep& step : steps) {
    if (step.kind == Kind::kReplace && step.pattern.empty()) {
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
  std::string out(text);
  const size_t limit = kMaxGrowth * text.size() + kSpareBytes;
  for (const NormalizerStep& step : steps_) {
    if (out.empty()) break;
    if (out.size() > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the normaliser makes ", out.size(), " bytes of ",
                       text.size(), ", at most ", limit, " are taken"));
    }
    if (step.kind == Kind::kPrepend) {
      out.insert(0, step.content);
    } else if (step.kind == Kind::kReplace) {
      out = absl::StrReplaceAll(out, {{step.pattern, step.content}});
    } else {
      absl::StatusOr<std::string> composed = Compose(out, step.kind);
      if (!composed.ok()) return composed.status();
      out = *std::move(composed);
    }
  }
  return out;
}

}  // namespace farkv

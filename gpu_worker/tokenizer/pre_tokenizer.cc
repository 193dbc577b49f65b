#include "gpu_worker/tokenizer/pre_tokenizer.h"

#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"

namespace farkv {
namespace {

using PreTokenizerKind = PreTokenizerStep::Kind;
using Behavior = PreTokenizerStep::Behavior;

constexpr size_t kMaxPreTokenizerSteps = 32;

// A stretch of a part: a match, or what lies between two.
struct Stretch {
  TextSpan span;
  bool match = false;
};

std::vector<Stretch> StretchesOf(TextSpan part,
                                 const std::vector<TextSpan>& matches,
                                 bool invert) {
  std::vector<Stretch> stretches;
  size_t at = part.begin;
  for (const TextSpan& match : matches) {
    if (match.begin > at) stretches.push_back({{at, match.begin}, invert});
    stretches.push_back({match, !invert});
    at = match.end;
  }
  if (part.end > at) stretches.push_back({{at, part.end}, invert});
  return stretches;
}

// A stretch joins the one before it when `joins` says so.
void AppendJoined(
    const std::vector<Stretch>& stretches, std::vector<TextSpan>& parts,
    const std::function<bool(const Stretch&, const Stretch&)>& joins) {
  for (size_t i = 0; i < stretches.size(); ++i) {
    if (i > 0 && joins(stretches[i - 1], stretches[i])) {
      parts.back().end = stretches[i].span.end;
    } else {
      parts.push_back(stretches[i].span);
    }
  }
}

void AppendParts(const std::vector<Stretch>& stretches, Behavior behavior,
                 std::vector<TextSpan>& parts) {
  switch (behavior) {
    case Behavior::kRemoved:
      for (const Stretch& stretch : stretches) {
        if (!stretch.match) parts.push_back(stretch.span);
      }
      break;
    case Behavior::kIsolated:
      for (const Stretch& stretch : stretches) parts.push_back(stretch.span);
      break;
    case Behavior::kContiguous:
      AppendJoined(stretches, parts, [](const Stretch& a, const Stretch& b) {
        return a.match == b.match;
      });
      break;
    case Behavior::kMergedWithPrevious:
      AppendJoined(stretches, parts, [](const Stretch& a, const Stretch& b) {
        return b.match && !a.match;
      });
      break;
    case Behavior::kMergedWithNext:
      AppendJoined(stretches, parts, [](const Stretch& a, const Stretch& b) {
        return a.match && !b.match;
      });
      break;
  }
}

absl::Status CutParts(const Regex& regex, Behavior behavior, bool invert,
                      CutText& cut) {
  RegexSearch search(regex);
  std::vector<TextSpan> parts, matches;
  for (const TextSpan& part : cut.parts) {
    matches.clear();
    FARKV_RETURN_IF_ERROR(search.FindAll(cut.text, part, matches));
    AppendParts(StretchesOf(part, matches, invert), behavior, parts);
  }
  cut.parts = std::move(parts);
  return absl::OkStatus();
}

// Replaces the text of each part.
void RewriteParts(CutText& cut,
                  const std::function<std::string(absl::string_view)>& write) {
  CutText rewritten;
  for (const TextSpan& part : cut.parts) {
    const size_t begin = rewritten.text.size();
    rewritten.text += write(
        absl::string_view(cut.text).substr(part.begin, part.end - part.begin));
    rewritten.parts.push_back({begin, rewritten.text.size()});
  }
  cut = std::move(rewritten);
}

void WriteMetaspaces(PreTokenizerStep::Prepend prepend, bool at_front,
                     CutText& cut) {
  using Prepend = PreTokenizerStep::Prepend;
  bool first = at_front;
  RewriteParts(cut, [&](absl::string_view part) {
    std::string text = absl::StrReplaceAll(part, {{" ", kMetaspace}});
    const bool wanted =
        prepend == Prepend::kAlways || (prepend == Prepend::kFirst && first);
    if (wanted && !absl::StartsWith(text, kMetaspace)) {
      text.insert(0, kMetaspace);
    }
    first = false;
    return text;
  });
}

std::string RegexOf(const PreTokenizerStep& step) {
  switch (step.kind) {
    case PreTokenizerKind::kSplit:
      return step.regex;
    case PreTokenizerKind::kDigits:
      return step.individual ? R"(\p{N})" : R"(\p{N}+)";
    case PreTokenizerKind::kByteLevel:
      return step.use_gpt2_regex ? kGpt2Regex : "";
    case PreTokenizerKind::kMetaspace:
      return step.split ? kMetaspace : "";
  }
  return "";
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::Create(
    const std::vector<PreTokenizerStep>& steps) {
  if (steps.size() > kMaxPreTokenizerSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pre-tokenizer has ", steps.size(), " steps, at most ",
                     kMaxPreTokenizerSteps, " are taken"));
  }
  PreTokenizer made;
  for (const PreTokenizerStep& settings : steps) {
    if (made.byte_level_) {
      return absl::UnimplementedError(
          "the pre-tokenizer has a step behind ByteLevel");
    }
    made.byte_level_ = settings.kind == PreTokenizerKind::kByteLevel;
    Step step{settings, std::nullopt};
    const std::string pattern = RegexOf(settings);
    if (!pattern.empty()) {
      FARKV_ASSIGN_OR_RETURN(step.regex, Regex::Compile(pattern));
    } else if (settings.kind == PreTokenizerKind::kSplit) {
      return absl::InvalidArgumentError(
          "the pre-tokenizer splits by an empty pattern");
    }
    made.steps_.push_back(std::move(step));
  }
  return made;
}

absl::StatusOr<CutText> PreTokenizer::Cut(std::string text,
                                          bool at_front) const {
  CutText cut;
  cut.text = std::move(text);
  if (cut.text.empty()) return cut;
  cut.parts.push_back({0, cut.text.size()});
  for (const Step& step : steps_) {
    const PreTokenizerStep& settings = step.settings;
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    switch (settings.kind) {
      case PreTokenizerKind::kSplit:
        behavior = settings.behavior;
        invert = settings.invert;
        break;
      case PreTokenizerKind::kDigits:
        break;
      case PreTokenizerKind::kByteLevel:
        if (settings.add_prefix_space) {
          RewriteParts(cut, [](absl::string_view part) {
            return absl::StrCat(absl::StartsWith(part, " ") ? "" : " ", part);
          });
        }
        break;
      case PreTokenizerKind::kMetaspace:
        WriteMetaspaces(settings.prepend, at_front, cut);
        behavior = Behavior::kMergedWithNext;
        break;
    }
    if (!step.regex) continue;
    FARKV_RETURN_IF_ERROR(CutParts(*step.regex, behavior, invert, cut));
  }
  return cut;
}

}  // namespace farkv

#include "gpu_worker/tokenizer/tokenizer_json_steps.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/json_fields.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"
#include "gpu_worker/tokenizer/regex.h"

namespace farkv {
namespace {

using nlohmann::json;
using Step = PreTokenizerStep;

// What a "pattern" object says, as a regular expression or as literal text.
struct Pattern {
  std::string text;
  bool literal = false;
};

absl::StatusOr<Pattern> ReadPattern(const json& step) {
  const json* pattern = FindField(step, "pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1 ||
      !pattern->begin()->is_string() ||
      (pattern->begin().key() != "String" &&
       pattern->begin().key() != "Regex")) {
    return absl::InvalidArgumentError(
        "\"pattern\" must be an object with \"String\" or \"Regex\"");
  }
  return Pattern{pattern->begin()->get<std::string>(),
                 pattern->begin().key() == "String"};
}

// Calls `read` for a section's step, or for each step of a "Sequence". Steps
// of a sequence are no sequences: none of the reference's files nests them.
absl::Status ForEachStep(
    const json& object, const char* section, const char* items,
    const std::function<absl::Status(const json&, const std::string&)>& read) {
  const json* found = FindField(object, section);
  if (found == nullptr) return absl::OkStatus();
  const auto read_one = [&](const json& step) -> absl::Status {
    absl::StatusOr<std::string> type = StringField(step, "type");
    const absl::Status status = type.ok() ? read(step, *type) : type.status();
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(section, ": ", status.message()));
  };
  const json* type = FindField(*found, "type");
  if (type == nullptr || *type != json("Sequence")) return read_one(*found);
  FARKV_ASSIGN_OR_RETURN(const json* steps, ArrayField(*found, items));
  if (steps == nullptr) return absl::OkStatus();
  for (const json& step : *steps) FARKV_RETURN_IF_ERROR(read_one(step));
  return absl::OkStatus();
}

absl::Status Unsupported(const std::string& type) {
  return absl::UnimplementedError(
      absl::StrCat("\"", type, "\" is not supported"));
}

absl::StatusOr<NormalizerStep> ReadNormalizerStep(const json& step,
                                                  const std::string& type) {
  using Kind = NormalizerStep::Kind;
  NormalizerStep made;
  if (type == "NFC") {
    made.kind = Kind::kNfc;
  } else if (type == "NFD") {
    made.kind = Kind::kNfd;
  } else if (type == "NFKC") {
    made.kind = Kind::kNfkc;
  } else if (type == "NFKD") {
    made.kind = Kind::kNfkd;
  } else if (type == "Prepend") {
    made.kind = Kind::kPrepend;
    FARKV_ASSIGN_OR_RETURN(made.content, StringField(step, "prepend"));
  } else if (type == "Replace") {
    made.kind = Kind::kReplace;
    FARKV_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(step));
    if (!pattern.literal) return Unsupported("Replace with a Regex");
    made.pattern = std::move(pattern.text);
    FARKV_ASSIGN_OR_RETURN(made.content, StringField(step, "content"));
  } else {
    return Unsupported(type);
  }
  return made;
}

absl::StatusOr<Step::Behavior> ReadBehavior(const json& step) {
  FARKV_ASSIGN_OR_RETURN(const std::string name, StringField(step, "behavior"));
  using Behavior = Step::Behavior;
  for (const auto& [known, behavior] :
       {std::pair("Isolated", Behavior::kIsolated),
        std::pair("Removed", Behavior::kRemoved),
        std::pair("MergedWithPrevious", Behavior::kMergedWithPrevious),
        std::pair("MergedWithNext", Behavior::kMergedWithNext),
        std::pair("Contiguous", Behavior::kContiguous)}) {
    if (name == known) return behavior;
  }
  return Unsupported(absl::StrCat("behavior ", name));
}

absl::StatusOr<Step::Prepend> ReadPrepend(const json& step) {
  const std::string old = "add_prefix_space";  // before "prepend_scheme"
  FARKV_ASSIGN_OR_RETURN(const bool add, BoolField(step, old.c_str(), true));
  FARKV_ASSIGN_OR_RETURN(
      const std::string scheme,
      StringField(step, "prepend_scheme", add ? "always" : "never"));
  if (scheme == "always") return Step::Prepend::kAlways;
  if (scheme == "first") return Step::Prepend::kFirst;
  if (scheme == "never") return Step::Prepend::kNever;
  return Unsupported(absl::StrCat("prepend_scheme ", scheme));
}

absl::Status ReadSplit(const json& step, Step& made) {
  FARKV_ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(step));
  made.regex = pattern.literal ? Regex::Quote(pattern.text) : pattern.text;
  FARKV_ASSIGN_OR_RETURN(made.behavior, ReadBehavior(step));
  FARKV_ASSIGN_OR_RETURN(made.invert, BoolField(step, "invert", false));
  return absl::OkStatus();
}

absl::Status ReadMetaspace(const json& step, Step& made) {
  made.kind = Step::Kind::kMetaspace;
  FARKV_ASSIGN_OR_RETURN(const std::string replacement,
                         StringField(step, "replacement", kMetaspace));
  if (replacement != kMetaspace) {
    return Unsupported("a replacement other than U+2581");
  }
  FARKV_ASSIGN_OR_RETURN(made.prepend, ReadPrepend(step));
  FARKV_ASSIGN_OR_RETURN(made.split, BoolField(step, "split", true));
  return absl::OkStatus();
}

absl::StatusOr<Step> ReadPreTokenizerStep(const json& step,
                                          const std::string& type) {
  Step made;
  if (type == "Split") {
    FARKV_RETURN_IF_ERROR(ReadSplit(step, made));
  } else if (type == "Digits") {
    made.kind = Step::Kind::kDigits;
    FARKV_ASSIGN_OR_RETURN(made.individual,
                           BoolField(step, "individual_digits", false));
  } else if (type == "ByteLevel") {
    made.kind = Step::Kind::kByteLevel;
    FARKV_ASSIGN_OR_RETURN(made.add_prefix_space,
                           BoolField(step, "add_prefix_space", true));
    FARKV_ASSIGN_OR_RETURN(made.use_gpt2_regex,
                           BoolField(step, "use_regex", true));
  } else if (type == "Metaspace") {
    FARKV_RETURN_IF_ERROR(ReadMetaspace(step, made));
  } else if (type == "WhitespaceSplit") {
    made.regex = R"(\s+)";
    made.behavior = Step::Behavior::kRemoved;
  } else {
    return Unsupported(type);
  }
  return made;
}

absl::Status ReadDecoderStep(const json& step, const std::string& type,
                             TokenizerSpec& spec) {
  if (type == "ByteLevel" || type == "ByteFallback" || type == "Fuse") {
    return absl::OkStatus();
  }
  if (type == "Metaspace") {
    spec.metaspace = true;
    FARKV_ASSIGN_OR_RETURN(const Step::Prepend prepend, ReadPrepend(step));
    spec.strip_first_space = prepend != Step::Prepend::kNever;
    return absl::OkStatus();
  }
  if (type == "Replace") {
    FARKV_ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(step));
    FARKV_ASSIGN_OR_RETURN(const std::string content,
                           StringField(step, "content"));
    if (!pattern.literal || pattern.text != kMetaspace || content != " ") {
      return Unsupported("Replace of anything but U+2581 by a space");
    }
    spec.metaspace = true;
    return absl::OkStatus();
  }
  const json* start = FindField(step, "start");
  const json* stop = FindField(step, "stop");
  const json* content = FindField(step, "content");
  if (type == "Strip" && start != nullptr && *start == json(1) &&
      (stop == nullptr || *stop == json(0)) && content != nullptr &&
      *content == json(" ")) {
    spec.strip_first_space = true;
    return absl::OkStatus();
  }
  return Unsupported(type);
}

}  // namespace

absl::Status ReadNormalizer(const json& object, TokenizerSpec& spec) {
  return ForEachStep(
      object, "normalizer", "normalizers",
      [&spec](const json& step, const std::string& type) -> absl::Status {
        FARKV_ASSIGN_OR_RETURN(NormalizerStep made,
                               ReadNormalizerStep(step, type));
        spec.normalizer.push_back(std::move(made));
        return absl::OkStatus();
      });
}

absl::Status ReadPreTokenizer(const json& object, TokenizerSpec& spec) {
  return ForEachStep(
      object, "pre_tokenizer", "pretokenizers",
      [&spec](const json& step, const std::string& type) -> absl::Status {
        FARKV_ASSIGN_OR_RETURN(Step made, ReadPreTokenizerStep(step, type));
        spec.pre_tokenizer.push_back(std::move(made));
        return absl::OkStatus();
      });
}

absl::Status ReadDecoder(const json& object, TokenizerSpec& spec) {
  return ForEachStep(object, "decoder", "decoders",
                     [&spec](const json& step, const std::string& type) {
                       return ReadDecoderStep(step, type, spec);
                     });
}

}  // namespace farkv
